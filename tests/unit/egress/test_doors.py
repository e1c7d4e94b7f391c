"""What accounts may say of their machines' doors: the server's maximum and default, the account's own, and rules that come and go."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from everforge.egress.authority import Authority
from everforge.egress.doors import LOG_LIMIT_MAX, EgressDoors
from everforge.egress.packages import PackageIndex, PipSettings
from everforge.egress.policy import WORDS, Word
from everforge.egress.rules import RULES_MAX
from everforge.egress.settings import EgressSettings, check, opened_place
from everforge.machines.doors import PolicyChange
from everforge.store.base import MachineRecord
from everforge.store.memory_egress import MemoryEgress
from everforge.wire.errors import InvalidInput
from everforge.wire.ids import AccountId, MachineId, MachineName
from kit.doorway import PATIENCE_SECONDS, Canned, Program, own_authority, porter, request, serving
from kit.house import keys_folder

ADA, BOB = AccountId("ada"), AccountId("bob")
RULE = "api.example.com"
RULES = [f"h{n}.example" for n in range(RULES_MAX)]


@asynccontextmanager
async def doors_of(book: MemoryEgress | None = None, certificates: str = "", **settings: Any) -> AsyncGenerator[EgressDoors]:
    """Nothing is looked up: whoever asks for a name has not been stopped by a policy, and is told so."""

    async def lookup(host: str, port: int) -> Sequence[str]:
        raise OSError(f"{host} was looked up")

    index = PackageIndex(PipSettings(index_url="http://127.0.0.1:9/simple", certificates=certificates))
    doors = EgressDoors(book or MemoryEgress(), keys_folder(), EgressSettings(**settings), index, lookup=lookup)
    try:
        yield doors
    finally:
        await doors.close()


def told(word: str, *rules: str) -> dict[str, Any]:
    """As a policy is kept."""
    return {"policy": word, "allow": [*rules]}


# --- the server's maximum ----------------------------------------------------------------------------------------------------------------------

Asked = tuple[str, list[str]]
EVERYTHING: list[Asked] = [("none", []), ("list", []), ("list", [RULE]), ("packages", []), ("packages", [RULE]), ("public", []), ("public", [RULE])]
# Under a maximum of `packages`, a list allows nothing, whatever is on it: it is not taken for something else, but refused.
FIT: dict[Word, list[Asked]] = {
    "none": EVERYTHING[:1],
    "packages": [("none", []), ("packages", [])],
    "list": EVERYTHING[:5],
    "public": EVERYTHING,
}
MAXIMUM = pytest.mark.parametrize(("widest", "asked"), [(widest, asked) for widest in WORDS for asked in EVERYTHING])


@MAXIMUM
async def test_the_maximum_is_the_most_that_may_be_asked_for_at_creation_by_a_change_and_as_a_default(widest: Word, asked: Asked) -> None:
    word, rules = asked
    book = MemoryEgress()
    async with doors_of(book, egress="none", egress_max=widest) as doors:
        if asked in FIT[widest]:
            assert await doors.new_policy(ADA, word, rules) == told(word, *rules)
            assert doors.changed_policy(told("none"), PolicyChange(word, rules)) == told(word, *rules)
            assert await doors.set_default(ADA, word, rules) == told(word, *rules)
            return
        sentence = re.escape(f"this server allows egress up to `{widest}`")
        with pytest.raises(InvalidInput, match=sentence):
            await doors.new_policy(ADA, word, rules)
        with pytest.raises(InvalidInput, match=sentence):
            doors.changed_policy(told("none"), PolicyChange(word, rules))
        with pytest.raises(InvalidInput, match=sentence):
            await doors.set_default(ADA, word, rules)
        assert await book.default(ADA) is None  # what was refused is not kept either


async def test_one_rule_more_is_refused_where_the_maximum_lets_no_rules() -> None:
    for widest in ("none", "packages"):
        async with doors_of(egress_max=widest) as doors:
            for present in (told("none"), told("packages")):
                with pytest.raises(InvalidInput, match="up to"):
                    doors.changed_policy(present, PolicyChange(add=[RULE]))


async def test_the_defaults_are_cut_down_to_the_maximum() -> None:
    book = MemoryEgress()
    await book.set_default(BOB, told("public", RULE))  # from a time when it was allowed
    async with doors_of(book, egress="public", egress_allow=(RULE,), egress_max="packages") as doors:
        assert await doors.default(ADA) == await doors.new_policy(ADA, None, None) == told("packages")
        assert await doors.default(BOB) == await doors.new_policy(BOB, None, None) == told("packages")
    async with doors_of(book, egress="public", egress_allow=(RULE,), egress_max="list") as doors:
        assert await doors.default(ADA) == await doors.default(BOB) == told("packages", RULE)
    async with doors_of(book, egress="packages", egress_max="none") as doors:
        assert await doors.default(ADA) == await doors.default(BOB) == told("none")


def machine(word: str, *rules: str) -> MachineRecord:
    return MachineRecord(
        id=MachineId("m1"), name=MachineName("older"), account=ADA, created_at=0.0, last_used_at=0.0, residence="awake", engine="fake", image="",
        memory_mb=1, cpus=1.0, disk_mb=1, processes=1, idle_seconds=1.0, egress=told(word, *rules),
    )  # fmt: skip


@asynccontextmanager
async def door_of(doors: EgressDoors, records: list[MachineRecord]) -> AsyncGenerator[int]:
    """The door of a machine whose record is the last one there; the port where its programs connect."""
    inside, outside = socket.socketpair()
    door = doors.open(outside, lambda: records[-1])
    try:
        async with porter(door, inside) as port:
            yield port
    finally:
        await door.close()


async def status(port: int, host: str) -> bytes:
    """What a program in the machine hears that asks for a host."""
    async with asyncio.timeout(PATIENCE_SECONDS), Program(*await asyncio.open_connection("127.0.0.1", port)) as program:
        return (await program.ask(request(f"http://{host}/", "Connection: close", host=host))).split()[1]


@pytest.mark.parametrize(
    ("widest", "given", "by_rule", "by_public"),
    [
        ("public", told("public", "{ruled}"), b"200", b"200"),
        ("list", told("public", "{ruled}"), b"200", b"403"),
        ("list", told("list", "{ruled}"), b"200", b"403"),
        ("packages", told("public", "{ruled}"), b"403", b"403"),
        ("packages", told("list", "{ruled}"), b"403", b"403"),
        ("none", told("public", "{ruled}"), b"403", b"403"),
    ],
)
async def test_what_a_machine_was_given_before_is_cut_down_at_its_door(widest: Word, given: dict[str, Any], by_rule: bytes, by_public: bytes) -> None:
    """Its record is as it was: a maximum that is raised again gives it back."""
    async with serving(Canned()) as ruled, serving(Canned()) as web:
        opened = (f"127.0.0.1:{ruled}", f"127.0.0.1:{web}")  # two places that the owner opened: one has a rule, the other is the web
        record = machine(given["policy"], *(rule.format(ruled=opened[0]) for rule in given["allow"]))
        async with doors_of(egress_max=widest, allow_hosts=opened) as doors, door_of(doors, [record]) as port:
            assert (await status(port, opened[0]), await status(port, opened[1])) == (by_rule, by_public)


async def test_a_record_that_changes_counts_for_the_next_attempt_and_every_attempt_is_on_the_log() -> None:
    async with serving(Canned()) as web:
        place = f"127.0.0.1:{web}"
        records = [machine("list", place)]
        async with doors_of(allow_hosts=(place,)) as doors, door_of(doors, records) as port:
            assert await status(port, place) == b"200"
            records.append(replace(records[0], egress=told("none")))
            assert await status(port, place) == b"403"
            newest, oldest = await doors.log(records[0].id, None, 10)
            assert (newest.verdict, oldest.verdict, oldest.allowed_by) == ("refused", "allowed", f"rule {place}")
            assert await doors.log(records[0].id, newest.number, 10) == [oldest]
            assert await doors.log(MachineId("another"), None, 10) == []
            for limit in (0, -1, LOG_LIMIT_MAX + 1):
                with pytest.raises(InvalidInput, match=f"from 1 to {LOG_LIMIT_MAX}"):
                    await doors.log(records[0].id, None, limit)


async def test_a_place_that_the_owner_did_not_open_stays_closed_whatever_the_rules() -> None:
    shut = Canned()
    async with serving(shut) as port_shut, serving(Canned()) as port_opened:
        place = f"127.0.0.1:{port_shut}"
        async with doors_of(allow_hosts=(f"127.0.0.1:{port_opened}",)) as doors, door_of(doors, [machine("public", place)]) as port:
            assert await status(port, place) == b"403"
    assert shut.heard == []


async def test_a_machine_without_a_word_of_egress_reaches_nothing() -> None:
    async with serving(Canned()) as web:
        record = replace(machine("none"), egress={})
        async with doors_of(allow_hosts=(f"127.0.0.1:{web}",)) as doors, door_of(doors, [record]) as port:
            assert await status(port, f"127.0.0.1:{web}") == b"403"


@pytest.mark.parametrize(
    ("is_known", "name", "heard"),
    [(True, "127.0.0.1", b"200"), (True, "127.0.0.2", b"502"), (True, "other.example", b"502"), (False, "127.0.0.1", b"502")],
)
async def test_a_secret_goes_only_to_a_host_that_proves_its_name_to_this_computer(tmp_path: Path, is_known: bool, name: str, heard: bytes) -> None:
    async def api(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await writer.start_tls(own_authority().context(name))
        await reader.read()

    trusted = tmp_path / "bundle.pem"
    trusted.write_text((own_authority() if is_known else Authority.in_folder(tmp_path)).certificate)
    async with serving(api) as api_port:
        place = f"127.0.0.1:{api_port}"
        async with doors_of(certificates=str(trusted), allow_hosts=(place,)) as doors, door_of(doors, [machine("list", place)]) as port:
            await doors.secrets.set(ADA, "KEY", "a value of mine", [place], "", [])
            async with Program(*await asyncio.open_connection("127.0.0.1", port)) as program, asyncio.timeout(PATIENCE_SECONDS):
                program.writer.write(request(place, method="CONNECT"))
                assert (await program.reader.readuntil(b"\r\n\r\n")).split()[1] == heard


# --- defaults ----------------------------------------------------------------------------------------------------------------------------------


async def test_new_machines_get_the_servers_default_and_what_it_allows_beyond() -> None:
    async with doors_of() as doors:
        assert await doors.new_policy(ADA, None, None) == told("packages")
    async with doors_of(egress="list", egress_allow=("API.example.com.", "*.example.org")) as doors:
        assert await doors.new_policy(ADA, None, None) == told("list", RULE, "*.example.org")  # in the one spelling of a rule


async def test_an_accounts_default_is_for_its_new_machines_until_it_is_taken_back() -> None:
    async with doors_of(egress="packages", egress_allow=("server.example",)) as doors:
        assert await doors.set_default(ADA, "list", [RULE]) == told("list", RULE)
        assert await doors.new_policy(ADA, None, None) == told("list", RULE)
        assert await doors.new_policy(BOB, None, None) == told("packages", "server.example")
        assert await doors.set_default(ADA, None, None) == told("packages", "server.example")
        assert await doors.new_policy(ADA, None, None) == told("packages", "server.example")


@pytest.mark.parametrize(("of_server", "word"), [("packages", "packages"), ("list", "list"), ("none", "list")])
async def test_hosts_alone_are_allowed_beside_what_the_server_has_for_everybody(of_server: str, word: str) -> None:
    async with doors_of(egress=of_server) as doors:
        assert await doors.set_default(ADA, None, [RULE]) == told(word, RULE)


async def test_an_accounts_default_has_no_rules_of_the_servers() -> None:
    async with doors_of(egress="packages", egress_allow=("server.example",)) as doors:
        assert await doors.set_default(ADA, "packages", None) == told("packages")
        assert await doors.set_default(ADA, "none", None) == told("none")
        assert await doors.new_policy(ADA, None, None) == told("none")


async def test_an_accounts_default_outlives_the_server() -> None:
    book = MemoryEgress()
    async with doors_of(book) as doors:
        await doors.set_default(ADA, "public", None)
    async with doors_of(book) as doors:
        assert await doors.default(ADA) == told("public")


async def test_what_is_asked_for_at_creation_goes_before_the_default() -> None:
    async with doors_of() as doors:
        await doors.set_default(ADA, "packages", ["default.example"])
        assert await doors.new_policy(ADA, "list", [RULE]) == told("list", RULE)
        assert await doors.new_policy(ADA, "public", None) == told("public")  # none of the default's rules
        assert await doors.new_policy(ADA, None, [RULE]) == told("packages", RULE)  # the default's word, and these rules
        assert await doors.new_policy(ADA, "none", None) == told("none")


@pytest.mark.parametrize(
    ("word", "allow"), [("all", None), ("list", ["a b"]), (None, ["ftp://example.com"]), ("none", [RULE]), ("list", [*RULES, RULE])]
)
async def test_what_is_no_policy_is_refused_everywhere_and_changes_nothing(word: str | None, allow: list[str] | None) -> None:
    async with doors_of() as doors:
        await doors.set_default(ADA, "list", [RULE])
        with pytest.raises(InvalidInput):
            await doors.set_default(ADA, word, allow)
        with pytest.raises(InvalidInput):
            await doors.new_policy(ADA, word, allow)
        with pytest.raises(InvalidInput):
            doors.changed_policy(told("list", RULE), PolicyChange(word, allow))
        assert await doors.default(ADA) == told("list", RULE)


# --- changes -----------------------------------------------------------------------------------------------------------------------------------

OTHER = "other.example"


@pytest.mark.parametrize(
    ("present", "change", "then"),
    [
        (told("list", RULE), PolicyChange(), told("list", RULE)),
        (told("list", RULE), PolicyChange(add=[OTHER]), told("list", RULE, OTHER)),
        (told("list", RULE), PolicyChange(add=["API.EXAMPLE.com."]), told("list", RULE)),
        (told("packages"), PolicyChange(add=[RULE]), told("packages", RULE)),
        (told("public"), PolicyChange(add=["tcp://db.example:5432"]), told("public", "tcp://db.example:5432")),
        (told("none"), PolicyChange(add=[RULE]), told("list", RULE)),
        ({}, PolicyChange(add=[RULE]), told("list", RULE)),
        (told("list", RULE, OTHER), PolicyChange(remove=["https://API.example.com/"]), told("list", OTHER)),
        (told("list", RULE), PolicyChange(remove=[RULE]), told("list")),
        (told("list", RULE), PolicyChange(add=[OTHER], remove=[RULE]), told("list", OTHER)),
        (told("list", RULE), PolicyChange("packages"), told("packages", RULE)),
        (told("packages", RULE), PolicyChange("public", [OTHER]), told("public", OTHER)),
        (told("list", RULE), PolicyChange(allow=[]), told("list")),
        (told("list", RULE), PolicyChange("none"), told("none")),
        (told("none"), PolicyChange("list", add=[RULE]), told("list", RULE)),
    ],
)
async def test_a_change_adds_takes_away_and_keeps_the_rest(present: dict[str, Any], change: PolicyChange, then: dict[str, Any]) -> None:
    async with doors_of() as doors:
        assert doors.changed_policy(present, change) == then


async def test_a_rule_that_is_not_there_cannot_be_taken_away() -> None:
    async with doors_of() as doors:
        for present in (told("none"), told("list"), told("list", f"*.{RULE}"), told("list", f"{RULE}:8443"), told("list", f"tcp://{RULE}:443")):
            with pytest.raises(InvalidInput, match=re.escape(f"there is no rule {RULE} that could be taken away")):
                doors.changed_policy(present, PolicyChange(remove=[RULE]))
        with pytest.raises(InvalidInput, match="is not a rule"):
            doors.changed_policy(told("list", RULE), PolicyChange(remove=["a b"]))


@pytest.mark.parametrize("change", [PolicyChange("none", [RULE]), PolicyChange("none", add=[RULE]), PolicyChange(allow=[RULE])])
async def test_none_with_rules_is_refused_in_words_that_help(change: PolicyChange) -> None:
    async with doors_of() as doors:
        with pytest.raises(InvalidInput, match="reaches nothing, whatever its rules: take `list`"):
            doors.changed_policy(told("none"), change)


async def test_a_policy_beyond_a_lower_maximum_can_be_narrowed_and_shows_what_is_in_force() -> None:
    async with doors_of(egress_max="list") as doors:
        given = told("public", RULE, "other.example")
        assert doors.in_force(given) == told("packages", RULE, "other.example")
        assert doors.changed_policy(given, PolicyChange(remove=[RULE])) == told("packages", "other.example")
    async with doors_of(egress_max="packages") as doors:
        assert doors.changed_policy(told("public", RULE), PolicyChange("packages")) == told("packages")


async def test_a_rule_that_is_there_already_or_comes_for_another_is_none_too_many() -> None:
    async with doors_of() as doors:
        full = told("list", *RULES)
        assert doors.changed_policy(full, PolicyChange(add=[RULES[3].upper()])) == full
        assert doors.changed_policy(full, PolicyChange(add=[RULE], remove=[RULES[0]])) == told("list", *RULES[1:], RULE)


async def test_rules_have_a_number_at_most() -> None:
    async with doors_of() as doors:
        assert doors.changed_policy(told("list", *RULES[:-1]), PolicyChange(add=RULES[-1:])) == told("list", *RULES)
        for change in (PolicyChange(add=[RULE]), PolicyChange("list", [*RULES, RULE])):
            with pytest.raises(InvalidInput, match=f"{RULES_MAX} egress rules, not {RULES_MAX + 1}"):
                doors.changed_policy(told("list", *RULES), change)
        assert doors.changed_policy(told("list", *RULES), PolicyChange(remove=RULES[:1])) == told("list", *RULES[1:])


# --- settings ----------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"egress": "all"}, {"egress_allow": ("a b",)}, {"egress_allow": (*RULES, RULE)}, {"allow_hosts": ("127.0.0.1",)},
        {"allow_hosts": ("127.0.0.1:9000", "*:1")}, {"egress_bytes_per_second": -1}, {"egress_bytes_per_day": -1}, {"egress_connections_per_second": -1},
        {"egress_connections_burst": 0}, {"egress_idle_seconds": 0.0}, {"egress_head_seconds": -1.0}, {"egress_log_max": 0},
    ],
)  # fmt: skip
async def test_settings_that_do_not_fit_are_refused_before_any_door_opens(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        check(EgressSettings(**wrong))
    with pytest.raises(InvalidInput):
        async with doors_of(**wrong):
            pass


def test_rates_of_0_are_no_limit_and_fit() -> None:
    check(EgressSettings(egress_bytes_per_second=0, egress_bytes_per_day=0, egress_connections_per_second=0))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("127.0.0.1:9000", ("127.0.0.1", 9000)),
        ("Db.Example.:5432", ("db.example", 5432)),
        ("[::1]:9000", ("::1", 9000)),
        ("0x7f000001:1", ("127.0.0.1", 1)),
        ("localhost:65535", ("localhost", 65535)),
    ],
)
def test_an_opened_place_is_one_host_and_one_port(text: str, place: tuple[str, int]) -> None:
    assert opened_place(text) == place


@pytest.mark.parametrize(
    "text",
    [
        "", "127.0.0.1", "127.0.0.1:", ":9000", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:*", "127.0.0.1:-1", "127.0.0.1:٣", "127.0.0.1:9000-9010", "*.example:80",
        "10.0.0.0/8:80", "http://127.0.0.1:9000", "127.0.0.1:9000/", "::1:9000", "a b:80", "127.0.0.1:80 ",
    ],
)  # fmt: skip
def test_what_does_not_name_one_host_and_one_port_opens_nothing(text: str) -> None:
    with pytest.raises(InvalidInput, match="opens nothing"):
        opened_place(text)
