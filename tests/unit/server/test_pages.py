"""Log-in links and the front page."""

from __future__ import annotations

import httpx2

from kit.service import service


async def test_a_log_in_link_gives_one_token_once() -> None:
    async with service() as s, httpx2.AsyncClient(base_url=s.url) as client:
        link = (await client.post("/v1/links", headers=s.headers)).json()["url"]
        assert link.startswith(f"{s.url}/login/")
        for _ in range(2):  # looking at it uses nothing up
            looked = await client.get(link)
            assert looked.status_code == 200
            assert "Log in" in looked.text
        used = (await client.post(link)).json()
        assert used["account"] == "owner"
        assert used["url"] == s.url
        headers = {"Authorization": f"Bearer {used['token']}"}
        assert (await client.get("/v1/whoami", headers=headers)).json() == {"account": "owner"}
        again = await client.post(link)
        assert (again.status_code, again.json()["code"]) == (404, "LinkInvalid")


async def test_a_link_gives_no_more_than_its_maker_may() -> None:
    async with service() as s, httpx2.AsyncClient(base_url=s.url) as client:
        token = await s.scoped("manage")
        link = (await client.post("/v1/links", headers={"Authorization": f"Bearer {token}"})).json()["url"]
        made = (await client.post(link)).json()["token"]
        assert (await client.get("/v1/whoami", headers={"Authorization": f"Bearer {made}"})).status_code == 403


async def test_a_browser_gets_a_page_that_nobody_may_frame_or_keep() -> None:
    async with service() as s, httpx2.AsyncClient(base_url=s.url) as client:
        link = f"/login/{s.accounts.new_link().code}"
        page = await client.post(link, headers={"Accept": "text/html"})
        assert "everforge login --api-base-url" in page.text
        assert page.headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        assert "Everforge" in (await client.get("/")).text
