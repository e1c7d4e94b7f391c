"""`everforge audit`: for people, for programs, and offline."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import pytest

from everforge.wire.audit import hash_of
from kit.auditlogs import LetGoMeanwhile
from kit.background import in_background

from .conftest import Command, env_of


@pytest.fixture
def log(everforge: Command, tmp_path: Path) -> Path:
    """An export of a log with something in it."""
    for name in ("audited-1", "audited-2"):
        everforge("machine", "new", "--name", name)
        everforge("machine", "delete", name)
    file = tmp_path / "audit.ndjson"
    done = everforge("audit", "export", str(file))
    assert done.code == 0, done.err
    return file


@pytest.fixture
def part(everforge: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What an account has that is not the owner's; its token is the one in use."""
    token = everforge("account", "new", f"audited-{secrets.token_hex(4)}", "--json").json["token"]
    everforge("machine", "new", "--name", "of-the-owner")
    with monkeypatch.context() as patch:
        patch.setenv("EVERFORGE_TOKEN", token)
        for name in ("mine-1", "mine-2"):
            everforge("machine", "new", "--name", name)
    everforge("machine", "delete", "of-the-owner")
    monkeypatch.setenv("EVERFORGE_TOKEN", token)
    everforge("machine", "delete", "mine-1")
    file = tmp_path / "part.ndjson"
    assert everforge("audit", "export", str(file)).code == 0
    return file


def test_the_log_is_shown_by_machine_and_action(everforge: Command, log: Path) -> None:
    rows = [line.split("\t") for line in everforge("audit", "--machine", "audited-1").out.splitlines()]
    assert [row[5:8] for row in rows][-2:] == [["machine.create", "audited-1", "ok"], ["machine.delete", "audited-1", "ok"]]
    found = everforge("audit", "--action", "machine.delete", "--last", "1", "--json").json
    assert [(e["action"], e["machine"]) for e in found] == [("machine.delete", "audited-2")]
    assert everforge("audit", "--since", "2001-01-01T00:00:00Z", "--account", "owner", "--json").json[0]["number"] == 1
    assert everforge("audit", "--since", "nonsense").code == 3
    assert "machine.delete\taudited-2\tok" in everforge("audit").out
    assert "Who did what" in everforge("audit", "--help").out


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("plain.txt", "path=plain.txt"),
        ("x outcome=ok", 'path="x outcome=ok"'),
        ('"a" b', r'path="\"a\" b"'),
        ("\u202etxt.exe", r"path=\u202etxt.exe"),
        ("a\u2066b\u200bc\u2028d\x1b[2Je", r"path=a\u2066b\u200bc\u2028d\x1b[2Je"),
        ("\U000e0041", r"path=\U000e0041"),
        ("déjà-vu.txt", "path=déjà-vu.txt"),
    ],
)
def test_what_others_wrote_is_shown_as_it_is_and_makes_no_field_of_its_own(everforge: Command, tmp_path: Path, path: str, shown: str) -> None:
    name = everforge("machine", "new", "--json").json["machine_name"]
    (tmp_path / "file").write_text("words")
    assert everforge("machine", "files", "put", name, str(tmp_path / "file"), path).code == 0
    everforge("machine", "delete", name)  # which is written before it is answered, and what came before it too
    rows = [line.split("\t") for line in everforge("audit", "--machine", name).out.split("\n")[:-1]]
    assert [row[8] for row in rows if row[5] == "file.write"] == [shown]


@pytest.mark.parametrize(
    "words", [["--machine", "nobody"], ["--account", "nobody"], ["--action", "webhook.retry"], ["--since", "2099-01-01T00:00:00Z"]]
)
def test_that_no_entries_match_is_said_beside_the_answer(everforge: Command, log: Path, words: list[str]) -> None:
    done = everforge("audit", *words)
    assert (done.code, done.out, done.sentence) == (0, "", "everforge: no entries match\n")
    programs = everforge("audit", *words, "--json")
    assert (programs.code, programs.json, programs.err) == (0, [], "")


@pytest.mark.parametrize("action", ["machine.creat", "machin", "machine.", "", "x" * 5000])
def test_an_action_that_there_is_not_is_answered_with_those_there_are(everforge: Command, log: Path, action: str) -> None:
    done = everforge("audit", "--action", action)
    assert (done.code, done.out) == (3, "")
    for known in ("there is no action", "machine.create, ", "file.write, ", "read, ", "audit.prune, "):
        assert known in done.sentence
    for known in ("machine", "machine.create", "read", "audit", "audit.unreadable", "webhook"):
        assert everforge("audit", "--action", known).code == 0


def test_the_log_verifies_on_the_server_and_offline(everforge: Command, stranger: Command, log: Path) -> None:
    assert everforge("audit", "verify").out.startswith("sound: ")
    checked = stranger("audit", "verify", str(log), "--json").json
    head = json.loads(log.read_text().splitlines()[-1])["head"]
    assert checked == {"sound": True, "whole": True, "entries": head["number"], **head}
    assert stranger("audit", "verify", str(log), "--part", "--json").json == checked  # of the whole log, all is checked
    assert everforge("audit", "verify", "--part", "--json").json["whole"] is True
    assert everforge("audit", "export", str(log)).code == 3  # nothing is overwritten
    for command, where in ((everforge, []), (stranger, [str(log)])):
        assert command("audit", "verify", *where, "--kept", f"{head['number']}:{head['hash']}").code == 0
        done = command("audit", "verify", *where, "--kept", f"{head['number']}:{'0' * 64}")
        assert (done.code, done.out.startswith(f"not sound: entry {head['number']}: it is not the one that was kept")) == (1, True)
        assert command("audit", "verify", *where, "--kept", "nonsense").code == 2


@pytest.mark.parametrize("reads_before", range(7))
@pytest.mark.parametrize("to", ["a file", "standard output"])
def test_an_export_of_a_log_that_is_let_go_meanwhile_verifies(
    stranger: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads_before: int, to: str
) -> None:
    file = tmp_path / "audit.ndjson"
    with in_background() as running, monkeypatch.context() as patch:
        book = running.service.witness.recorder.book = LetGoMeanwhile(1200)
        book.reads_before, book.through, book.step = reads_before, 700, 300
        for name, value in env_of(running).items():
            patch.setenv(name, value)
        done = stranger("audit", "export", str(file) if to == "a file" else "-")
        assert done.code == 0, done.err
    if to != "a file":
        file.write_text(done.out)
    assert stranger("audit", "verify", str(file)).out.startswith("sound: ")


def test_only_the_owner_can_check_the_whole_log(everforge: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERFORGE_TOKEN", everforge("account", "new", "checker", "--json").json["token"])
    done = everforge("audit", "verify")
    assert (done.code != 0, done.out) == (True, "")
    assert "only the owner of the server" in done.sentence
    assert "`everforge audit verify --part`" in done.sentence


@pytest.mark.parametrize("whose", ["the owner's", "an account's"])
def test_an_export_that_was_cut_anywhere_is_told_from_a_whole_one(stranger: Command, log: Path, part: Path, whose: str) -> None:
    file = log if whose == "the owner's" else part
    whole, cut = file.read_text(), file.with_name("cut.ndjson")
    assert stranger("audit", "verify", str(file), "--part").code == 0
    ends = [at for at, letter in enumerate(whole) if letter == "\n"]
    for end in {0, 1, len(whole) // 2, len(whole) - 3, *(at + 1 for at in ends[:-1])}:
        cut.write_text(whole[:end])
        done = stranger("audit", "verify", str(cut), "--part")
        assert (done.code, done.out.startswith("not sound: entry ")) == (1, True), end
    lines = whole.splitlines()
    for line in range(len(lines)):
        cut.write_text("\n".join([*lines[:line], *lines[line + 1 :]]))
        assert stranger("audit", "verify", str(cut), "--part").code == 1, line


def test_of_an_account_its_own_entries_are_exported_and_checked_as_far_as_they_tell(everforge: Command, part: Path) -> None:
    first, *entries, end = [json.loads(line) for line in part.read_text().splitlines()]
    assert first["part"]["account"].startswith("audited-")
    assert [entry["action"] for entry in entries] == ["machine.create", "machine.create", "machine.delete"]
    assert entries[2]["number"] > entries[1]["number"] + 1  # the owner's stands between
    assert end["end"]["entries"] == 3
    last = {"number": entries[-1]["number"], "hash": entries[-1]["hash"]}
    for where in ([], [str(part)]):
        assert everforge("audit", "verify", *where, "--part", "--json").json == {"sound": True, "whole": False, "entries": 3, **last}
        assert everforge("audit", "verify", *where, "--part").out.startswith("sound as far as one account can tell: 3 entries")
        done = everforge("audit", "verify", *where)
        assert (done.code, done.out) == (3, ""), "a part must not pass for the whole log"
        for entry in entries:
            assert everforge("audit", "verify", *where, "--part", "--kept", f"{entry['number']}:{entry['hash']}").code == 0
        for number, hash, why in (
            (entries[0]["number"], "0" * 64, "it is not the one that was kept"),
            (entries[1]["number"] + 1, "0" * 64, "it was kept, and is not in the log any more"),
            (10**9, "0" * 64, "it was kept, and is not in the log any more"),
        ):
            done = everforge("audit", "verify", *where, "--part", "--kept", f"{number}:{hash}")
            assert (done.code, done.out.startswith(f"not sound: entry {number}: {why}")) == (1, True)


@pytest.mark.parametrize("what", ["edited", "moved", "added", "nonsense", "no number", "another end", "no neighbour"])
def test_an_export_of_one_account_that_somebody_was_at_is_found_out(stranger: Command, part: Path, what: str) -> None:
    lines = part.read_text().splitlines()
    match what:
        case "edited":
            lines[2] = lines[2].replace('"ok"', '"no"')
        case "moved":
            lines[1], lines[2] = lines[2], lines[1]
        case "added":
            lines.append(lines[1])
        case "nonsense":
            lines[2] = "[]"
        case "no number":
            lines[2] = lines[2].replace('"detail": {', '"detail": {"n": NaN, ')
        case "another end":
            lines[-1] = lines[-1].replace('"digest": "', '"digest": "0')
        case _:
            entry = json.loads(lines[2])
            values = {**entry, "previous": "0" * 64}
            lines[2] = json.dumps({**values, "hash": hash_of(values)})
    part.write_text("\n".join(lines) + "\n")
    done = stranger("audit", "verify", str(part), "--part")
    assert (done.code, done.out.startswith("not sound: entry ")) == (1, True)


@pytest.mark.parametrize("what", ["edited", "deleted", "moved", "cut", "added", "nonsense", "forged head"])
def test_an_export_that_somebody_was_at_is_found_out(stranger: Command, log: Path, what: str) -> None:
    lines = log.read_text().splitlines()
    match what:
        case "edited":
            lines[1] = lines[1].replace('"ok"', '"no"')
        case "deleted":
            del lines[1]
        case "moved":
            lines[1], lines[2] = lines[2], lines[1]
        case "cut":
            del lines[-2:]
        case "added":
            lines.append(lines[0])
        case "nonsense":
            lines[1] = "[]"
        case _:
            lines[-1] = lines[-1].replace('"hash": "', '"hash": "0')
    log.write_text("\n".join(lines) + "\n")
    done = stranger("audit", "verify", str(log))
    assert done.code == 1
    assert done.out.startswith("not sound: entry ")
    found = stranger("audit", "verify", str(log), "--json").json
    assert found["sound"] is False
    assert found["number"] == (2 if what in ("edited", "deleted", "moved", "nonsense") else found["number"])


def test_a_number_that_no_entry_has_is_unsound_and_no_traceback(stranger: Command, log: Path) -> None:
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines[:2], lines[2].replace("{", '{"x": 1e999, ', 1), *lines[3:]]) + "\n")
    done = stranger("audit", "verify", str(log))
    assert (done.code, done.out.startswith("not sound: ")) == (1, True), done
    assert stranger("audit", "verify", str(log), "--kept", f"{'9' * 5000}:a").code == 2


def test_an_export_that_is_refused_leaves_no_file_in_the_way(everforge: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "audit.ndjson"
    with monkeypatch.context() as patch:
        patch.setenv("EVERFORGE_TOKEN", "no.token")
        assert everforge("audit", "export", str(file)).code == 3
    assert not file.exists()
    assert everforge("audit", "export", str(file)).code == 0
