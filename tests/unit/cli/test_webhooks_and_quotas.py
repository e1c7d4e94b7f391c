"""`everforge webhook`, `everforge account quota`, `everforge usage`: for people and for programs."""

from __future__ import annotations

import socket
import time
from base64 import b64encode

import pytest

from everforge.webhooks.settings import WebhookSettings
from kit.background import in_background

from .conftest import Command, env_of

URL = "https://hooks.example.org/in"  # nothing happens here that would be told there


def test_webhooks_are_added_listed_and_deleted(everforge: Command) -> None:
    id, secret = everforge("webhook", "add", URL, "--event", "machine.broken,limit.hit", "--event", "auth.failures").out.split()
    assert secret.startswith("whsec_")
    assert everforge("webhook", "list").out.split("\t")[:3] == [id, URL, "auth.failures limit.hit machine.broken"]
    [shown] = everforge("webhook", "list", "--json").json
    assert (shown["id"], "secret" in shown) == (id, False)
    assert everforge("webhook", "dead", "list").out == ""
    assert everforge("webhook", "dead", "retry").out == "0 tried anew\n"
    assert everforge("webhook", "delete", id).out == f"deleted {id}\n"
    for words in (
        ["webhook", "delete", id],
        ["webhook", "test", id],
        ["webhook", "add", "http://127.0.0.1/"],
        ["webhook", "add", URL, "--event", "nonesuch"],
    ):
        refused = everforge(*words)
        assert (refused.code, refused.out) == (3, "")
        assert refused.sentence


def test_an_address_that_is_too_long_is_told_how_long_it_may_be(everforge: Command) -> None:
    done = everforge("webhook", "add", URL + "x" * 2000)
    assert (done.code, done.out) == (3, "")
    assert f"has 2000 characters at most, and this one {len(URL) + 2000}" in done.sentence
    id, _ = everforge("webhook", "add", URL + "x" * (2000 - len(URL))).out.split()
    everforge("webhook", "delete", id)


def test_a_secret_of_ones_own_comes_by_standard_input_and_not_on_the_command_line(everforge: Command) -> None:
    secret = "whsec_" + b64encode(b"a secret of one's own, of 32 b..").decode()
    seen = everforge("webhook", "add", URL, "--secret", secret)
    assert (seen.code, seen.out, secret in seen.err) == (2, "", False)
    assert "give --secret - and the secret on standard input" in seen.sentence
    id, used = everforge("webhook", "add", URL, "--secret", "-", stdin=f"{secret}\n").out.split()
    assert used == secret
    everforge("webhook", "delete", id)
    assert everforge("webhook", "add", URL, "--secret", "-").code == 2  # nothing came
    refused = everforge("webhook", "add", URL, "--secret", "-", stdin="too-simple")
    assert (refused.code, "too-simple" in refused.sentence) == (3, False)
    assert everforge("webhook", "list").out == ""


def test_how_many_of_the_dead_there_was_no_room_for_is_said_below_them(stranger: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        place = f"127.0.0.1:{closed.getsockname()[1]}"
    settings = WebhookSettings(webhook_hosts_open=(place,), webhook_tries=1, webhook_dead_max=1)
    with in_background(webhooks=settings) as running:
        for name, value in env_of(running).items():
            monkeypatch.setenv(name, value)
        assert stranger("webhook", "dead", "list").err == ""
        stranger("webhook", "add", f"http://{place}/", "--event", "machine.created")
        for _ in range(3):
            stranger("machine", "new")
        wanted = "everforge: there was no room for 2 older ones since the server's start\n"
        until = time.monotonic() + 10
        while (done := stranger("webhook", "dead", "list")).err != wanted and time.monotonic() < until:
            time.sleep(0.05)
        assert (done.err, done.out.count("\n")) == (wanted, 1)
        listed = stranger("webhook", "dead", "list", "--json")
        assert (listed.err, len(listed.json)) == ("", 1)


@pytest.mark.parametrize("words", [["--event", ""], ["--event", ","], ["--event", "limit.hit,"], ["--event", "limit.hit", "--event", ""]])
def test_an_event_without_a_name_is_refused_and_nothing_is_made(everforge: Command, words: list[str]) -> None:
    refused = everforge("webhook", "add", URL, *words)
    assert (refused.code, refused.out) == (3, "")
    assert "an event's name is empty" in refused.sentence
    assert everforge("webhook", "list").out == ""


def test_a_quota_is_set_and_shown(everforge: Command) -> None:
    everforge("account", "new", "quota-ada")
    shown = dict(
        line.split("\t") for line in everforge("account", "quota", "quota-ada", "--machines", "20", "--requests-per-second", "1.5").out.splitlines()
    )
    assert (shown["machines"], shown["awake"], shown["requests_per_second"]) == ("20", "no limit", "1.5")
    assert everforge("account", "quota", "quota-ada", "--machines", "-1", "--json").json["machines"] == 0
    rows = [line.split("\t") for line in everforge("account", "list").out.splitlines()]
    assert {row[0]: row[4] for row in rows}["quota-ada"] == "requests_per_second=1.5"
    assert "quota: machines\tno limit" in everforge("usage").out.splitlines()
    assert everforge("usage", "--json").json["quota"]["machines"] == 0
    assert everforge("account", "quota", "nobody", "--machines", "1").code == 3
    assert everforge("account", "quota", "quota-ada", "--machines", "-7").code == 2
    for odd in ("inf", "nan", "-inf", "-7"):
        done = everforge("account", "quota", "quota-ada", f"--requests-per-second={odd}")
        assert (done.code, done.out) == (2, "")
        assert f"{odd} is no number of requests: 0 is no limit" in done.sentence
    assert everforge("account", "quota", "quota-ada", "--json").json["requests_per_second"] == 1.5
    everforge("account", "delete", "quota-ada")
