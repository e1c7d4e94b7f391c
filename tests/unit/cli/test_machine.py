"""`everforge machine ...` on a whole server: what it prints where, and with which exit code it ends."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import pytest

from everforge.cli import quick
from everforge.cli.machine import listing
from everforge.cli.machine.watching import interrupting
from kit.service import Running

from .conftest import Command, env_of, spawned


@pytest.fixture
def first(everforge: Command) -> Iterator[str]:
    name = everforge("machine", "new", "--tag", "team=red").out.strip()
    yield name
    everforge("machine", "delete", name)


def test_a_machine_is_made_as_it_was_wished_for_shown_and_deleted(everforge: Command) -> None:
    made = everforge(
        "machine", "new", "--name", "ada", "--tag", "a=1", "--tag", "b=x=y", "--memory-mb", "256", "--idle-seconds", "5.5", "--env", "K=V"
    )
    assert (made.code, made.out, made.err) == (0, "ada\n", "")
    found = everforge("machine", "show", "ada", "--json").json
    assert (found["tags"], found["memory_mb"], found["idle_seconds"]) == ({"a": "1", "b": "x=y"}, 256, 5.5)
    assert everforge("machine", "exec", "ada", "environ['K']").out == "'V'\n"
    assert "tags\ta=1 b=x=y\n" in everforge("machine", "show", "ada").out
    assert everforge("machine", "delete", "ada").out == "deleted ada\n"
    assert everforge("machine", "show", "ada").code == 3


def test_lists_are_tab_separated_lines_filtered_by_tag_state_and_prefix(everforge: Command) -> None:
    for name, tag in (("list-a", "x=1"), ("list-b", "x=2")):
        everforge("machine", "new", "--name", name, "--tag", tag)
    everforge("machine", "hibernate", "list-a")
    lines = everforge("machine", "list", "--prefix", "list-").out.splitlines()
    assert [line.split("\t")[:2] for line in lines] == [["list-b", "ready"], ["list-a", "asleep"]]
    assert {len(line.split("\t")) for line in lines} == {7}
    assert [m["name"] for m in everforge("machine", "list", "--json", "--tag", "x=2").json] == ["list-b"]
    assert [m["name"] for m in everforge("machine", "list", "--state", "asleep", "--json").json] == ["list-a"]
    assert everforge("machine", "list", "--prefix=list-").out.splitlines() == lines  # a spelling that only typer reads
    nothing = everforge("machine", "list", "--tag", "x=3")
    assert (nothing.code, nothing.out) == (0, "")
    assert everforge("machine", "list", "--tag", "x=3", "--json").json == []
    everforge("machine", "delete", "list-a", "list-b")


def test_lists_page_by_themselves_and_the_sdk_goes_on_where_the_quick_way_ends(everforge: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"page-{i}" for i in range(5)]
    for name in names:
        everforge("machine", "new", "--name", name)
    monkeypatch.setattr(listing, "PAGE_MACHINES", 2)
    fetch, asked = quick.fetch, list[str]()

    def twice(path: str, query: list[tuple[str, str]]) -> dict[str, object]:
        asked.append(path)
        if len(asked) > 2:
            raise quick.NotQuick("enough")
        return fetch(path, query)

    monkeypatch.setattr(quick, "fetch", twice)
    assert [m["name"] for m in everforge("machine", "list", "--prefix", "page-", "--json").json] == names[::-1]
    assert len(asked) == 3
    everforge("machine", "delete", *names)


def test_exec_prints_output_where_it_belongs_and_then_the_value(everforge: Command, first: str) -> None:
    done = everforge("machine", "exec", first, "tell('out'); tell('wrong', stream='stderr'); tell('no end', partial=True); 6 * 7")
    assert (done.code, done.out, done.err) == (0, "out\nno end\n42\n", "wrong\n")
    assert everforge("machine", "exec", first, "-", stdin="x = 'stdin'\nprint(x)\n").out == "stdin\n"
    assert everforge("machine", "exec", first, "--env", "ONE=1", "environ['ONE']").out == "'1'\n"


def test_exec_of_code_that_raises_is_exit_code_1_and_its_traceback_on_stderr(everforge: Command, first: str) -> None:
    done = everforge("machine", "exec", first, "print('so far'); 1/0")
    assert (done.code, done.out) == (1, "so far\n")
    assert "ZeroDivisionError" in done.err
    late = everforge("machine", "exec", first, "--instruction-timeout-seconds", "0.1", "hang()")
    assert (late.code, late.err) == (1, "Timed out after 0.1 s\neverforge: give it longer with --instruction-timeout-seconds\n")


def test_exec_tells_programs_everything_in_one_object(everforge: Command, first: str) -> None:
    done = everforge("machine", "exec", first, "--json", "tell('a'); tell('b', stream='stderr'); show({'text/plain': 'c'}); 1/0")
    found = done.json
    assert (done.code, done.err, found["stdout"], found["stderr"]) == (1, "", "a\n", "b\n")
    assert (found["end"], found["error"], found["displays"]) == ("error", "ZeroDivisionError: division by zero", [{"text/plain": "c"}])


def test_a_detached_instruction_goes_on_until_it_is_interrupted(everforge: Command, first: str) -> None:
    assert everforge("machine", "exec", first, "--detach", "hang()").out == "0\n"
    assert everforge("machine", "exec", first, "--detach", "--json", "hang()").json == {"machine_name": first, "instruction": 1}
    while everforge("machine", "show", first, "--json").json["state"] != "busy":
        pass
    assert everforge("machine", "interrupt", first, "--pending").out == "interrupted\n"
    assert everforge("machine", "exec", first, "--interrupt", "1").out == "1\n"
    assert everforge("machine", "interrupt", first, "--json").json == {"interrupted": False}


def test_pictures_are_written_to_files_when_asked(everforge: Command, first: str, tmp_path: Path) -> None:
    code = f"show({{'image/png': {base64.b64encode(b'PNG').decode()!r}, 'text/plain': '<Figure>'}}); show({{'image/svg+xml': '<svg/>'}}); show({{'image/png': '!'}})"
    done = everforge("machine", "exec", first, "--pictures", str(tmp_path / "new/folder"), code)
    assert (done.code, done.out) == (0, "<Figure>\n")
    assert {path.name: path.read_bytes() for path in (tmp_path / "new/folder").iterdir()} == {
        f"{first}-0-1.png": b"PNG",
        f"{first}-0-2.svg": b"<svg/>",
    }
    assert everforge("machine", "exec", first, "--pictures", "/proc/nothing", "x = 1").sentence.startswith("everforge: /proc/nothing: ")
    assert everforge("machine", "exec", first, "--json", "x").json["end"] == "error", "nothing is run when its pictures could not be kept"


def test_snapshots_forks_and_ways_back(everforge: Command, first: str) -> None:
    everforge("machine", "exec", first, "x = 1")
    taken = everforge("machine", "snapshot", first, "--name", "one").out.strip()
    everforge("machine", "exec", first, "x = 2")
    assert [line.split("\t")[:2] for line in everforge("machine", "snapshot", first, "--list").out.splitlines()][-1] == [taken, "one"]
    undo = everforge("machine", "rollback", first, "one", "--json").json["undo"]
    assert everforge("machine", "exec", first, "x").out == "1\n"
    assert undo in everforge("machine", "snapshot", first, "--list").out
    everforge("machine", "rollback", first, undo)
    assert everforge("machine", "exec", first, "x").out == "2\n"
    copies = everforge("machine", "fork", first, "--count", "2").out.split()
    assert [everforge("machine", "exec", copy, "x").out for copy in copies] == ["2\n", "2\n"]
    assert everforge("machine", "fork", first, "named-copy", "--json").json == {"machine_names": ["named-copy"]}
    assert everforge("machine", "snapshot", first, "--delete", "one").out == "deleted one\n"
    told = everforge("machine", "reset", first).out.splitlines()
    assert everforge("machine", "exec", first, "x").code == 1
    assert everforge(*told[1].removeprefix("undo with: everforge ").split()).code == 0
    assert everforge("machine", "exec", first, "x").out == "2\n"
    everforge("machine", "delete", *copies, "named-copy")


def test_a_machine_that_cannot_be_saved_goes_back_without_what_it_has(server: Running, everforge: Command, first: str) -> None:
    assert server.house is not None
    everforge("machine", "snapshot", first, "--name", "one")
    everforge("machine", "exec", first, "x = 2")
    server.house.host.failing_saves = 1000
    try:
        refused = everforge("machine", "rollback", first, "one")
        assert f"everforge machine rollback {first} SNAPSHOT --discard" in refused.sentence
        assert everforge("machine", "rollback", first, "one", "--discard").out == f"{first} is back at one\nwhat was before is not kept\n"
        assert everforge("machine", "exec", first, "x").code == 1
        command = everforge("machine", "reset", first).sentence.split("`")[1].removeprefix("everforge ")
        assert everforge(*command.split()).out == f"{first} is as new\nwhat was before is not kept\n"
        assert everforge(*command.split(), "--json").json == {"undo": None}
    finally:
        server.house.host.failing_saves = 0


def test_sleep_and_waking(everforge: Command, first: str) -> None:
    assert everforge("machine", "hibernate", first).out == f"{first} is asleep\n"
    assert everforge("machine", "wake", first, "--json").json["state"] == "ready"


def test_tags_are_set_and_taken_away_one_by_one(everforge: Command, first: str) -> None:
    assert everforge("machine", "tag", first).out == "team\tred\n"
    assert everforge("machine", "tag", first, "a=b", "c=").out == "a\tb\nc\t-\nteam\tred\n"
    assert everforge("machine", "tag", first, "a=2", "--remove", "team", "--remove", "c", "--json").json == {"tags": {"a": "2"}}


def test_a_token_for_a_tag_is_told_that_it_cannot_take_that_one_away(everforge: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    everforge("machine", "new", "--name", "redm", "--tag", "team=red", "--tag", "draft=1")
    token = everforge("token", "new", "--tag", "team=red").out.strip()
    with monkeypatch.context() as patch:
        patch.setenv("EVERFORGE_TOKEN", token)
        done = everforge("machine", "tag", "redm", "new=1", "--remove", "team")
        assert (done.code, done.out) == (3, "")
        assert "this token is for machines with team=red alone" in done.sentence
        assert everforge("machine", "tag", "redm").out == "draft\t1\nteam\tred\n", "nothing of it was done"
        assert everforge("machine", "tag", "redm", "--remove", "draft").out == "team\tred\n"
    assert everforge("machine", "tag", "redm", "--remove", "team").out == ""
    everforge("machine", "delete", "redm")


def test_a_mistyped_name_is_answered_with_the_near_ones(everforge: Command) -> None:
    everforge("machine", "new", "--name", "laboratory")
    assert everforge("machine", "exec", "labratory", "1").sentence.endswith("; did you mean laboratory?\n")
    assert "everforge machine list" in everforge("machine", "show", "quite-different").sentence
    everforge("machine", "delete", "laboratory")


@pytest.mark.parametrize(
    "words",
    [
        *(
            ["machine", one, "u11"]
            for one in ("show", "repl", "logs", "interrupt", "fork", "snapshot", "rollback", "reset", "hibernate", "wake", "tag")
        ),
        *(["machine", "files", one, "u11", "f"] for one in ("list", "get", "delete")),
        ["machine", "exec", "u11", "1"],
        ["machine", "delete", "u11"],
        ["machine", "new", "--from-snapshot", "u11:kept"],
        ["repl", "u11"],
        *(["egress", one, "u11"] for one in ("show", "log")),
        *(["egress", one, "u11", "a.example"] for one in ("allow", "deny")),
        ["egress", "set", "u11", "none"],
    ],
    ids=" ".join,
)
def test_every_command_that_takes_a_name_answers_a_mistyped_one_with_the_near_ones(everforge: Command, words: list[str]) -> None:
    everforge("machine", "new", "--name", "u1")
    done = everforge(*words)
    assert (done.code, done.out) == (3, "")
    assert done.sentence.endswith("; did you mean u1?\n")
    everforge("machine", "delete", "u1")


# --- Ctrl-C ------------------------------------------------------------------------------------------------------------------------


def test_ctrl_c_interrupts_the_instruction(server: Running, first: str) -> None:
    with spawned("machine", "exec", first, "tell('begun'); hang()", env=env_of(server)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.startswith("everforge: interrupting; Ctrl-C again leaves at once\n")


def test_ctrl_c_in_a_piped_session_interrupts_its_own_instruction_and_no_other(server: Running, everforge: Command) -> None:
    everforge("machine", "new", "--name", "shared")
    everforge("machine", "exec", "shared", "seen = []")
    everforge("machine", "exec", "shared", "--detach", "--instruction-timeout-seconds", "60", "hang()")
    with spawned("repl", "shared", env=env_of(server), stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write("seen.append(1)\n")
        process.stdin.close()
        with httpx2.Client(base_url=server.url, headers=server.headers) as client:
            while len(found := client.get("/v1/machine/shared/exec").json()["instructions"]) < 3:
                time.sleep(0.02)
            assert [each["state"] for each in found] == ["ended", "running", "queued"]
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
            states = [each["state"] for each in client.get("/v1/machine/shared/exec").json()["instructions"]]
            assert states == ["ended", "running", "ended"]
    everforge("machine", "delete", "shared")


def test_ctrl_c_while_it_is_being_given_is_for_it() -> None:
    asked = threading.Event()
    instruction: Any = SimpleNamespace(number=3, interrupt=asked.set)

    def give() -> Any:
        signal.raise_signal(signal.SIGINT)
        return instruction

    with interrupting(cast(Any, SimpleNamespace(name="first")), give) as given:
        assert given is instruction
        assert asked.wait(60)


def test_a_second_ctrl_c_leaves_at_once_and_says_what_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    asked, answer = threading.Event(), threading.Event()

    def interrupt() -> None:
        asked.set()
        answer.wait(60)

    instruction: Any = SimpleNamespace(number=3, interrupt=interrupt)
    with pytest.raises(KeyboardInterrupt), interrupting(cast(Any, SimpleNamespace(name="first")), lambda: instruction):
        signal.raise_signal(signal.SIGINT)
        assert asked.wait(60)
        signal.raise_signal(signal.SIGINT)
    answer.set()
    assert "instruction 3 of first goes on: `everforge machine interrupt first` kills it, with the machine's variables" in capsys.readouterr().err


# --- bad input ---------------------------------------------------------------------------------------------------------------------

USAGE = [
    ["new", "--tag", "novalue"], ["new", "--tag", "=x"], ["new", "--env", "novalue"], ["new", "--memory-mb", "much"], ["new", "--from-snapshot", "alone"],
    ["new", "extra"], ["list", "--tag", "novalue"], ["list", "extra"], ["list", "--nonesuch"], ["show"], ["show", "a", "b"], ["exec", "only-name"],
    ["exec", "a", "1", "--instruction-timeout-seconds", "soon"], ["exec", "a", "1", "--env", "x"], ["fork"], ["fork", "a", "b", "--count", "2"],
    ["snapshot"], ["snapshot", "a", "--list", "--name", "x"], ["rollback"], ["rollback", "a", "s", "--instruction", "1"],
    ["rollback", "a", "--instruction", "x"], ["reset"], ["hibernate"], ["wake"], ["interrupt"], ["tag"], ["tag", "a", "novalue"], ["delete"],
    ["files", "list"], ["files", "get", "a"], ["files", "get", "a", "/"], ["files", "put", "a"], ["files", "delete", "a"], ["files", "nonesuch"], ["nonesuch"],
    ["show", "\udcff"], ["files", "get", "a", "b\udcff"], ["new", "--memory-mb", "9" * 20], ["logs", "a", "--after", "9" * 20],
]  # fmt: skip


@pytest.mark.parametrize("words", USAGE, ids=lambda words: ascii(" ".join(words)))
def test_wrong_usage_is_one_sentence_and_exit_code_2(everforge: Command, words: list[str]) -> None:
    done = everforge("machine", *words)
    assert (done.code, done.out) == (2, "")
    assert "--help`" in done.sentence
    told = everforge("machine", *words, "--json")
    assert (told.code, json.loads(told.err)["code"]) == (2, "WrongUsage")


REFUSED = [
    ["new", "--name", "Not A Name"], ["new", "--name", ""], ["new", "--memory-mb", "-1"], ["new", "--cpus", "nan"],
    ["new", "--image", "x" * 5000],
    ["show", "nonesuch"], ["show", ".."], ["show", ""], ["show", "a/../b"], ["exec", "nonesuch", "1"], ["exec", "nonesuch", "1", "--detach"],
    ["interrupt", "nonesuch"], ["fork", "nonesuch"], ["fork", "nonesuch", "--count", "2"], ["snapshot", "nonesuch"], ["snapshot", "nonesuch", "--list"],
    ["snapshot", "nonesuch", "--delete", "x"], ["rollback", "nonesuch"], ["reset", "nonesuch"], ["hibernate", "nonesuch"], ["wake", "nonesuch"],
    ["tag", "nonesuch", "a=b"], ["delete", "nonesuch"], ["files", "put", "nonesuch", "/nothing/here"],
]  # fmt: skip


@pytest.mark.parametrize("words", REFUSED, ids=lambda words: ascii(" ".join(words))[:60])
def test_a_refusal_is_one_sentence_and_exit_code_3(everforge: Command, words: list[str]) -> None:
    done = everforge("machine", *words)
    assert (done.code, done.out) == (3, ""), done.err
    assert done.sentence
    told = everforge("machine", *words, "--json")
    assert told.code == 3
    assert set(json.loads(told.err)) == {"code", "message", "retry", "id", "details"}


@pytest.mark.parametrize("given", [b"\xff\xfe", b"x" * (16 * 1024 * 1024 + 1)])
def test_code_on_stdin_that_is_no_text_or_too_long_is_wrong_usage(everforge: Command, given: bytes) -> None:
    assert everforge("machine", "exec", "any", "-", stdin=given).code == 2
