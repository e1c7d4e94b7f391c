"""`everforge sandbox test` where there is no sandbox: every judge must say so. A check that cannot fail is none."""

from __future__ import annotations

import io
import json
import queue
import shutil
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from everforge.cli.sandbox import examination, ground
from everforge.cli.sandbox import interruption as interruption_of_ours
from everforge.cli.sandbox.attack import Attack, Seen
from everforge.cli.sandbox.attacks import GROUPS
from everforge.cli.sandbox.bait import MARK, VARIABLE, Bait, laid_out
from everforge.cli.sandbox.examination import Examination
from everforge.cli.sandbox.interruption import interruptible
from everforge.cli.sandbox.picture import _views  # pyright: ignore[reportPrivateUsage]
from everforge.cli.sandbox.trial import Ran, look, outcome
from everforge.cli.sandbox.views import rows, surroundings
from everforge.client.config import Access, write_config
from everforge.wire.errors import EverforgeError
from kit.bare import bare

from .conftest import Command

ATTACKS = {attack.name: attack for group in GROUPS for attack in group.attacks}
SMALL = {"memory_mb": 128, "processes": 10, "disk_mb": 16}  # what an attack then takes of this computer is little
# Attacks that the computer of a test must not make, or that a plain process cannot win: what they would bring back if they got through.
GOT_THROUGH = {
    "other-addresses": {"a home router": "done"},
    "door": {"127.0.0.1:80": "HTTP/1.1 200 Connection established"},
    "names": {"found": ["192.0.2.7"]},
    "modules": {"from memory": "EFAULT", "from a file": "EBADF"},
    "forged-end": {"end": "value"},
}


@pytest.fixture
def bait() -> Generator[Bait]:
    with laid_out() as bait:
        bait.limits, bait.root = dict(SMALL), str(bait.folder.parent)
        host, port = next(one.address for one in bait.listeners if not isinstance(one.address, str))
        bait.server, bait.neighbour = (host, int(port)), [(host, int(port))]
        yield bait


@pytest.mark.root
@pytest.mark.parametrize("name", sorted(set(ATTACKS) - set(GOT_THROUGH)))
def test_without_walls_the_attack_gets_through_and_its_judge_says_so(name: str, bait: Bait) -> None:
    found = outcome(ATTACKS[name], bare, bait)
    assert not found.held, found
    assert found.made or name == "deaf", found  # who never stops gives no answer either


@pytest.mark.parametrize("name", sorted(GOT_THROUGH))
def test_a_judge_sees_what_got_through(name: str, bait: Bait) -> None:
    fact: dict[str, Any] = GOT_THROUGH[name]
    assert not ATTACKS[name].judge(Seen(fact.get("end", "value"), fact), bait).held


@pytest.mark.parametrize(("free_mb", "held"), [(None, True), (SMALL["disk_mb"], True), (SMALL["disk_mb"] - 1, False)])
def test_a_disk_that_one_machine_can_fill_is_not_held(free_mb: int | None, held: bool, bait: Bait) -> None:
    bait.free_mb = free_mb
    found = ATTACKS["disk-fill"].judge(Seen("value", {"why": "ENOSPC"}), bait)
    assert found.held is held
    if not held:
        assert "has only 15 MB free" in found.happened
        assert "`disk_mb`" in found.happened


def test_the_free_room_of_a_server_elsewhere_is_not_known(tmp_path: Path) -> None:
    server: Any = None
    assert examination.free_mb(ground.Found(server, True, None)) is None
    assert examination.free_mb(ground.Found(server, True, tmp_path / "not/yet")) == pytest.approx(shutil.disk_usage(tmp_path).free >> 20, abs=1000)


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_an_attack_that_was_not_made_is_not_one_that_was_held(name: str, bait: Bait) -> None:
    for ran in (Ran("error", error="NameError: name 'os' is not defined"), Ran("lost"), Ran("value", stdout="nothing of use\n"), Ran("interrupted")):
        found = outcome(ATTACKS[name], lambda code, seconds, ran=ran: ran, bait)
        assert not found.held, (ran, found)


@pytest.mark.parametrize(
    "said", ["[Errno 111] Connection refused", "timed out", "closed", "SSH-2.0-OpenSSH_9.6", "HTTP/1.1 502 nobody", "HTTP/1.1 429 many"]
)
def test_a_door_that_gave_no_refusal_was_not_tried(said: str, bait: Bait) -> None:
    judge, refusal = ATTACKS["door"].judge, "HTTP/1.1 403 closed to machines whatever their policy"
    found = judge(Seen("value", {"127.0.0.1:80": refusal, "localhost:80": said}), bait)
    assert (found.held, found.made) == (False, False), found
    assert judge(Seen("value", {"127.0.0.1:80": refusal, "localhost:80": refusal}), bait).held


def test_a_door_where_nobody_listens_refuses_nothing(bait: Bait) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        bait.door = gone.getsockname()
    found = outcome(ATTACKS["door"], bare, bait)
    assert (found.held, found.made) == (False, False), found
    assert "Connection refused" in found.happened


def test_a_door_that_refused_by_the_servers_policy_says_so(bait: Bait) -> None:
    bait.open_policy = False
    found = ATTACKS["door"].judge(Seen("value", {"127.0.0.1:80": "HTTP/1.1 403 no"}), bait)
    assert found.held
    assert "policy: it lets no machine ask for more" in found.happened


def test_only_sockets_that_are_there_outside_are_looked_for_inside(bait: Bait) -> None:
    own = [one.address for one in bait.listeners if isinstance(one.address, str)]
    bait.warden = str(bait.folder / "none")
    assert bait.warden not in bait.told()["sockets"]
    bait.warden = str(bait.folder / "socket")
    assert bait.told()["sockets"][-len(own) - 1 :] == [bait.warden, *own]


@pytest.mark.parametrize("answers", [True, False])
def test_a_machine_that_is_said_to_go_on_was_asked(answers: bool, bait: Bait) -> None:
    def ground(code: str, seconds: float) -> Ran:
        if "while True" in code:
            return Ran("timed_out")
        return bare(code, seconds) if answers else Ran("lost")

    assert outcome(ATTACKS["deaf"], ground, bait).held is answers


@pytest.mark.parametrize("name", ["modules", "machinery", "power", "mount", "user-namespace"])
def test_on_a_processor_whose_system_calls_are_not_known_nothing_was_tried(name: str, bait: Bait) -> None:
    def elsewhere(code: str, seconds: float) -> Ran:
        return bare("import platform\nplatform.machine = lambda: 'riscv64'\n" + code.replace("from __future__ import annotations\n", ""), seconds)

    found = outcome(ATTACKS[name], elsewhere, bait)
    assert (found.held, found.made) == (False, False), found


def test_an_answer_that_the_code_made_up_is_not_taken_for_one(bait: Bait) -> None:
    def answer(told: dict[str, Any]) -> dict[str, Any]:
        print('{"real": false}')
        print("0123456789abcdef" + '{"real": false}')
        return {"real": True}

    assert look(answer, bare, {}, 20).fact == {"real": True}


def test_nothing_inside_is_told_the_secret(bait: Bait) -> None:
    assert bait.secret not in repr(bait.told())
    assert bait.secret in bait.file.read_text()


def test_the_bait_is_gone_afterwards() -> None:
    import os

    with laid_out() as bait:
        assert os.environ[VARIABLE] == bait.secret
        assert bait.process.poll() is None
        assert bait.folder.exists()
    assert VARIABLE not in os.environ
    assert bait.process.poll() is not None
    assert not bait.folder.exists()
    assert [one.socket.fileno() for one in bait.listeners] == [-1] * len(bait.listeners)


def test_names_of_attacks_are_unique_and_each_says_what_was_tried() -> None:
    every = [attack for group in GROUPS for attack in group.attacks]
    assert len({attack.name for attack in every}) == len(every) == len({attack.tried for attack in every})
    assert all(group.question.endswith("?") and group.answer.startswith("No") for group in GROUPS)


def test_both_views_are_of_the_same_things(bait: Bait) -> None:
    seen = look(surroundings, bare, {}, 20)
    assert seen.fact["kernel"] == surroundings({})["kernel"]
    assert all(row.inside and row.outside for row in rows(seen, seen, SMALL))


def test_the_machine_is_shown_with_the_limits_that_it_was_given_and_not_with_what_it_sees() -> None:
    """Without control groups it sees all of the computer's memory, and gets its share all the same."""
    seen = Seen("value", surroundings({}))
    shown = {row.what: (row.inside, row.outside) for row in rows(seen, seen, SMALL)}
    assert shown["Memory"] == ("128 MB", f"{seen.number('memory_mb'):,} MB")
    assert shown["Disk"] == ("16 MB", f"{shutil.disk_usage('/').total >> 20:,} MB")
    assert shown["Most programs at once"] == ("10", seen.text("processes_max"))


@pytest.mark.parametrize("width", [60, 100])
def test_lines_that_do_not_fit_a_narrow_terminal_are_indented_too(width: int) -> None:
    seen = Seen("value", surroundings({}))
    found = Examination([], rows(seen, seen, SMALL), "http://127.0.0.1:1", True, True, 1.0)
    console = Console(width=width, file=io.StringIO(), highlight=False)
    with console.capture() as drawn:
        console.print(_views(found))  # pyright: ignore[reportPrivateUsage]
    lines = [line for line in drawn.get().splitlines() if line.strip()]
    assert len(lines) > len(found.views) or width > 60, "some of them are broken in two"
    assert [line for line in lines if not line.startswith("    ")] == []


# --- the command -----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def three_attacks(monkeypatch: pytest.MonkeyPatch) -> list[Attack]:
    """Harmless ones on a plain process, in place of a machine of a real server."""
    group = replace(GROUPS[0], attacks=[ATTACKS["file-by-name"], ATTACKS["file-by-link"]])
    other = replace(GROUPS[1], attacks=[ATTACKS["processes"]])
    monkeypatch.setattr(examination, "GROUPS", (group, other))
    monkeypatch.setattr("everforge.cli.sandbox.picture.GROUPS", (group, other))
    return [*group.attacks, *other.attacks]


class _Server:
    base_url = "http://127.0.0.1:1"


class _Found:
    server, running, data = _Server(), True, None


class _Machine:
    class Info:
        memory_mb, processes, disk_mb = SMALL["memory_mb"], SMALL["processes"], SMALL["disk_mb"]

    def info(self) -> Info:
        return self.Info()


@pytest.fixture
def no_walls(three_attacks: list[Attack], monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def a_server(running: _Found) -> Generator[_Found]:
        yield running

    @contextmanager
    def a_machine(server: object, bait: Bait | None = None) -> Generator[_Machine]:
        yield _Machine()

    monkeypatch.setattr(examination, "running_server", _Found)
    monkeypatch.setattr(examination, "a_server", a_server)
    monkeypatch.setattr(examination, "a_machine", a_machine)
    monkeypatch.setattr(examination, "an_open_machine", a_machine)
    monkeypatch.setattr(examination, "waiting_in", lambda machine, secret: [])  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr(examination, "in_machine", lambda machine: bare)  # pyright: ignore[reportUnknownLambdaType]


@pytest.mark.usefixtures("no_walls")
def test_the_exit_code_is_1_and_the_picture_is_red_when_attacks_get_through(stranger: Command) -> None:
    done = stranger("sandbox", "test")
    assert done.code == 1
    assert "YES. See what got through:" in done.out
    assert done.out.count("BAD") == 3
    assert "3 of 3 attacks" in done.out
    assert "Do not run code that you do not trust here." in done.out
    assert MARK not in done.out


@pytest.mark.usefixtures("no_walls")
def test_it_says_first_which_server_it_tests(stranger: Command) -> None:
    assert stranger("sandbox", "test").sentence == f"everforge: testing the server at {_Server.base_url}\n"
    assert stranger("sandbox", "test", "--json").err == ""


class OwnServer(EverforgeError):
    """One would have been started."""


@pytest.fixture
def no_own_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def started() -> None:
        raise OwnServer("one of its own is started")

    monkeypatch.setattr(ground, "_own_server", started)


def _closed_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return f"http://127.0.0.1:{closed.getsockname()[1]}"


@pytest.mark.usefixtures("no_own_server")
def test_a_server_that_was_given_and_does_not_answer_is_not_replaced_by_another(stranger: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    url = _closed_url()
    monkeypatch.setenv("EVERFORGE_URL", url)
    unknown = stranger("sandbox", "test")
    assert (unknown.code, unknown.out) == (3, "")
    assert f"EVERFORGE_URL is {url}, but no token for it is known" in unknown.sentence
    monkeypatch.setenv("EVERFORGE_TOKEN", "a.b")
    dead = stranger("sandbox", "test")
    assert (dead.code, dead.out) == (4, "")
    assert f"no server answers at {url}" in dead.sentence
    monkeypatch.delenv("EVERFORGE_URL")
    monkeypatch.delenv("EVERFORGE_TOKEN")
    path = write_config(Access(url, "a.b"))
    logged_in = stranger("sandbox", "test")
    assert (logged_in.code, f"It is the server of {path}" in logged_in.sentence) == (4, True)


@pytest.mark.usefixtures("no_own_server")
def test_where_no_server_was_given_and_none_runs_here_one_is_started_and_it_is_said(stranger: Command, home: Path) -> None:
    said = ["everforge: no server is running here: testing one that is started for this", "everforge: one of its own is started"]
    assert stranger("sandbox", "test").err.splitlines() == said
    (home / "data").mkdir()
    for name, text in (("owner.token", "a.b"), ("server.json", json.dumps({"url": _closed_url()}))):  # what one leaves that was killed
        (home / "data" / name).write_text(text)
        (home / "data" / name).chmod(0o600)
    assert stranger("sandbox", "test").err.splitlines() == said


@pytest.mark.usefixtures("no_walls")
def test_the_same_for_programs(stranger: Command) -> None:
    done = stranger("sandbox", "test", "--json")
    assert done.code == 1
    assert done.json["held"] is False
    assert done.json["own_server"] is False
    assert [(one["name"], one["held"], one["made"]) for one in done.json["attacks"]] == [
        ("file-by-name", False, True), ("file-by-link", False, True), ("processes", False, True),
    ]  # fmt: skip
    assert {"what", "inside", "outside"} == set(done.json["views"][0])


def test_an_attack_that_could_not_be_made_leaves_the_question_open(stranger: Command, no_walls: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_ground(code: str, seconds: float) -> Ran:
        return Ran("error", error="\x1b[31mMemoryError")

    monkeypatch.setattr(examination, "in_machine", lambda machine: broken_ground)  # pyright: ignore[reportUnknownLambdaType]
    done = stranger("sandbox", "test")
    assert done.code == 1
    assert "the question stays open" in done.out
    assert "\x1b" not in done.out, "what comes from inside is text, and gives no orders to a terminal"


# --- Ctrl-C ------------------------------------------------------------------------------------------------------------------------------


def test_the_first_ctrl_c_is_raised_and_those_during_the_cleaning_up_do_not_disturb_it() -> None:
    put_away = list[str]()
    with pytest.raises(KeyboardInterrupt), interruptible() as interruption:
        try:
            with interruption:
                signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)
            put_away.append("all of it")
    assert put_away == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_ctrl_c_that_comes_when_all_is_done_is_told_once_all_is_put_away() -> None:
    put_away = list[str]()
    with pytest.raises(KeyboardInterrupt), interruptible() as interruption:
        with interruption:
            pass
        signal.raise_signal(signal.SIGINT)
        put_away.append("all of it")
    assert put_away == ["all of it"]


@pytest.fixture
def terminal() -> Generator[None]:
    """We may be run with nohup ourselves."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("terminal")
def test_a_terminal_that_is_closed_ends_it_as_orderly_as_ctrl_c() -> None:
    with pytest.raises(SystemExit) as ended, interruptible() as interruption, interruption:
        signal.raise_signal(signal.SIGHUP)
    assert ended.value.code == 128 + signal.SIGHUP


def test_a_cleaning_up_that_takes_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruption_of_ours, "WORD_AFTER_SECONDS", 0.0)
    said: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(interruption_of_ours, "say", said.put)
    with pytest.raises(KeyboardInterrupt), interruptible() as interruption:
        try:
            with interruption:
                signal.raise_signal(signal.SIGINT)
        finally:
            assert "cleaning up" in said.get(timeout=30)
