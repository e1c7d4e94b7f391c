"""The way out: of one machine, of the account's new machines, and the secrets that are put in outside."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Literal

from everforge.wire import api
from everforge.wire.ids import secret_name

from .door import AsyncDoor, segment

ATTEMPTS_A_PAGE = 200


class AsyncEgress:
    """Of one machine."""

    def __init__(self, door: AsyncDoor, path: str) -> None:
        self._door = door
        self._path = f"{path}/egress"

    async def show(self) -> api.EgressPolicy:
        return await self._door.get(api.EgressPolicy, self._path)

    async def set(self, policy: api.Egress) -> api.EgressPolicy:
        """none, list (what the rules allow), packages (the package index, and the rules), or public. It counts at once. none drops the rules."""
        return await self._change(api.EgressChange(egress=policy))

    async def allow(self, *rules: str) -> api.EgressPolicy:
        """A host (api.example.com), all below one (*.example.com), a port (example.com:8443), or plain TCP (tcp://db.example.com:5432)."""
        return await self._change(api.EgressChange(allow=[*rules]))

    async def deny(self, *rules: str) -> api.EgressPolicy:
        """Takes rules away again."""
        return await self._change(api.EgressChange(deny=[*rules]))

    async def log(self) -> AsyncIterator[api.EgressAttempt]:
        """Everything that it has tried to reach, newest first; pages by itself."""
        before: int | None = None
        while True:
            page = await self._door.get(api.EgressLog, f"{self._path}/log", {"before": before, "limit": ATTEMPTS_A_PAGE})
            for attempt in page.attempts:
                yield attempt
            if page.next is None:
                return
            before = page.next

    async def _change(self, change: api.EgressChange) -> api.EgressPolicy:
        return await self._door.post(api.EgressPolicy, self._path, change)


class AsyncEgressDefault:
    """Of the account's new machines."""

    def __init__(self, door: AsyncDoor) -> None:
        self._door = door

    async def show(self) -> api.EgressPolicy:
        return await self._door.get(api.EgressPolicy, "/egress")

    async def set(self, policy: api.Egress | None = None, *, allow: Sequence[str] | None = None) -> api.EgressPolicy:
        """Without arguments: the server's own default again."""
        change = api.EgressDefault(egress=policy, egress_allow=None if allow is None else [*allow])
        return await self._door.post(api.EgressPolicy, "/egress", change, again=True, method="PUT")


class AsyncSecrets:
    """Values that machines use and never see."""

    def __init__(self, door: AsyncDoor) -> None:
        self._door = door

    async def set(
        self,
        name: str,
        value: str,
        *,
        hosts: Sequence[str],
        header: str | None = None,
        places: Sequence[Literal["body", "url"]] | None = None,
    ) -> api.Secret:
        """Machines have a placeholder in the environment variable `name`. In requests to these hosts, over TLS alone, the value takes its place: in
        headers, and where `places` say so. `header`, as in "Authorization: Bearer {}", is put in by itself."""
        request = api.NewSecret(value=value, hosts=[*hosts], header=header, places=None if places is None else [*places])
        return await self._door.post(api.Secret, f"/secrets/{segment(secret_name(name))}", request, again=True, method="PUT")

    async def list(self) -> list[api.Secret]:
        """Without their values."""
        return (await self._door.get(api.SecretList, "/secrets")).secrets

    async def delete(self, name: str) -> None:
        await self._door.delete(f"/secrets/{segment(secret_name(name))}")
