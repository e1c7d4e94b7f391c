"""The threat model tells the truth: tests that it names exist, nothing it must speak of is missing, and its scores follow from its factors."""

from __future__ import annotations

import ast
import re
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
MODEL = (REPO / "docs/threat-model.md").read_text()
NODE = re.compile(r"`(tests/[\w/]+\.py::[\w:]+)`")
# What is promised, clause by clause: each of these words must stand in a line of its promise, before the tests that hold it.
CLAUSES = {
    "Isolation": [
        "path of the host", "folders of the server", "device", "socket", "container engine", "cluster", "environment variable", "process of the host",
        "image is read-only", "network but the egress door", "ordinary user", "capabilities", "each other", "nor the server", "mounting",
        "changing root", "by handle", "control groups", "/proc", "/sys", "release_agent", "core_pattern", "kernel modules", "eBPF", "userfaultfd",
        "io_uring", "traced", "signalled", "descriptor", "user namespaces", "upload", "links", "no more rights", "downloaded", "a second", "everforge sandbox test",
    ],
    "Egress": [
        "none", "list", "packages", "public", "loopback", "private", "link-local", "metadata", "every spelling", "whatever the policy", "owner",
        "exactly", "looked up once", "checked", "TLS", "CONNECT", "redirect", "host headers", "smuggled", "no way around", "no route", "no DNS",
        "no raw socket", "record", "which policy refused", "how to allow", "wake", "rollback", "caps", "bytes", "connections", "account",
        "default policy", "maximum",
    ],
    "Secrets": [
        "placeholder", "processes", "memory images", "files", "own host alone", "over TLS alone", "redirect", "headers", "Basic", "bodies", "addresses",
        "unreadable", "cut into pieces", "for no others", "policy comes before", "encrypted", "no log",
    ],
    "Limits": [
        "memory", "many together", "memfd_create", "/dev/shm", "processors", "neighbours", "a flood", "System V", "processes", "threads", "open files", "disk",
        "files without number", "output", "a line without end", "no text", "results", "endless loops", "recursion", "signals ignored",
        "server's memory", "archives", "climb out", "never end", "uploads", "bodies", "queues", "quotas", "machines", "awake", "requests per second",
        "documents", "default",
    ],
    "Durability": [
        "killed at every step", "acknowledged", "in order", "leaks", "every call", "fails once", "disk is full", "power", "flipped bit", "torn", "lost write",
        "before anything runs", "clocks", "rounds of sleep", "growing data", "history", "concurrent clients", "nothing twice", "one live copy",
        "executed once",
    ],
    "Doors": [
        "random", "hashed", "shown once", "revoked", "transfer", "scopes", "read", "exec", "manage", "that may more", "by tag", "every route", "401", "403",
        "404", "this computer alone", "log-in link", "web page", "made to lead here", "cookie", "origin", "named their origin", "AI tools over HTTP", "no message", "shared", "installer", "script", "never a page",
        "OpenAPI", "slow", "greedy",
    ],
    "Forks": [
        "random", "numpy", "secrets", "UUIDs", "OpenSSL", "temporary names", "host names", "plain wake", "connections are dead", "in forks", "after a sleep",
    ],
}  # fmt: skip
PROMISES = list(CLAUSES)
LAYERS = [
    "Foundation Models", "Data Operations", "Agent Frameworks", "Deployment and Infrastructure", "Evaluation and Observability",
    "Security and Compliance", "Agent Ecosystem",
]  # fmt: skip
RISKS = [
    "Agent Goal Hijack", "Tool Misuse and Exploitation", "Identity and Privilege Abuse", "Agentic Supply Chain Vulnerabilities",
    "Unexpected Code Execution", "Memory and Context Poisoning", "Insecure Inter-Agent Communication", "Cascading Failures",
    "Human-Agent Trust Exploitation", "Rogue Agents",
]  # fmt: skip
FACTORS = {"0": Decimal(0), "½": Decimal("0.5"), "1": Decimal(1)}
METRICS = {
    "AV": "NALP", "AC": "LH", "AT": "NP", "PR": "NLH", "UI": "NPA",
    "VC": "HLN", "VI": "HLN", "VA": "HLN", "SC": "HLN", "SI": "HLN", "SA": "HLN",
}  # fmt: skip


def part(text: str, title: str, level: int) -> str:
    """What stands under a heading, up to the next of its level or above."""
    [found] = re.findall(rf"^{'#' * level} {re.escape(title)}\n(.*?)(?=^#{{1,{level}}} |\Z)", text, re.MULTILINE | re.DOTALL)
    return found


def rows(text: str) -> list[list[str]]:
    """Of the one table in it, without its head."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")][2:]


def bullets(text: str) -> list[str]:
    return re.findall(r"^- .*?(?=^- |\Z)", text, re.MULTILINE | re.DOTALL)


def threats() -> dict[str, str]:
    found = re.findall(r"^### (T\d+)\. .*?\n(.*?)(?=^### |\Z)", part(MODEL, "Threats", 2), re.MULTILINE | re.DOTALL)
    assert len({id for id, _ in found}) == len(found)
    return dict(found)


@cache
def names_in(file: str) -> frozenset[str]:
    """Names as pytest gives them, without parameters. Models of hypothesis are classes that are assigned."""
    found = set[str]()
    for node in ast.parse((REPO / file).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            inner = [one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
            found.update(f"{node.name}::{name}" for name in inner if name.startswith("test_"))
        elif isinstance(node, ast.Assign):
            found.update(target.id for target in node.targets if isinstance(target, ast.Name) and target.id.startswith("Test"))
    return frozenset(found)


# --- tests that are named --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", ["docs/threat-model.md", "SECURITY.md", "docs/limits.md"])
def test_every_test_that_is_named_exists(document: str) -> None:
    text = (REPO / document).read_text()
    named = [node.partition("::") for node in NODE.findall(text)]
    assert [f"{file}::{name}" for file, _, name in named if not (REPO / file).is_file() or name not in names_in(file)] == []
    assert len(re.findall(r"\btests/[\w/]+\.py::", text)) == len(named), "one is not written as `tests/file.py::test_name`"


def test_every_file_of_tests_for_security_and_faults_stands_behind_something() -> None:
    named = {node.partition("::")[0] for node in NODE.findall(MODEL)}
    there = {str(path.relative_to(REPO)) for folder in ("security", "chaos") for path in (REPO / "tests" / folder).glob("test_*.py")}
    assert there - named == set()


def lines_of(promise: str) -> list[str]:
    return bullets(part(part(MODEL, "Promises, and the tests that hold them", 2), promise, 3))


def missing(promise: str, lines: list[str]) -> list[str]:
    """Clauses of which no line speaks. A name of a test is no line that somebody reads."""
    said = [" ".join(NODE.sub("", line).split()) for line in lines]
    return [clause for clause in CLAUSES[promise] if not any(re.search(rf"(?<!\w){re.escape(clause)}(?!\w)", line, re.IGNORECASE) for line in said)]


@pytest.mark.parametrize("name", PROMISES)
def test_every_clause_of_a_promise_is_in_a_line_of_it(name: str) -> None:
    assert missing(name, lines_of(name)) == []


@pytest.mark.parametrize(("name", "number"), [(name, number) for name in PROMISES for number in range(len(lines_of(name)))])
def test_no_line_of_a_promise_could_go_without_being_missed(name: str, number: int) -> None:
    """A line that is new wants its clause among the others here."""
    lines = lines_of(name)
    left_out = lines.pop(number)
    assert missing(name, lines), f"add what this line promises to CLAUSES: {left_out}"


@pytest.mark.parametrize("name", PROMISES)
def test_every_line_of_a_promise_has_a_test(name: str) -> None:
    lines = lines_of(name)
    assert lines
    assert [line for line in lines if not NODE.search(line)] == []


def test_there_are_no_other_promises() -> None:
    assert re.findall(r"^### (.*)$", part(MODEL, "Promises, and the tests that hold them", 2), re.MULTILINE) == PROMISES


@pytest.mark.parametrize("id", threats())
def test_every_threat_says_what_could_happen_what_stands_against_it_and_what_is_left_over(id: str) -> None:
    text = threats()[id]
    said = re.findall(r"^\*\*(.*?)\.\*\*", text, re.MULTILINE)
    if "**Control.** Not built yet" in text:
        assert (said, NODE.findall(text)) == (["Could happen", "Control", "Left over"], [])
    else:
        assert said == ["Could happen", "Control", "Tests", "Left over"]
        assert NODE.search(text)


# --- layers and risks ------------------------------------------------------------------------------------------------------------------------


def test_all_seven_layers_are_there_and_their_threats_say_so_too() -> None:
    table = rows(part(MODEL, "MAESTRO's seven layers", 2))
    assert [row[0] for row in table] == [f"{number}. {name}" for number, name in enumerate(LAYERS, 1)]
    said = {id: re.findall(r"^\*Layer ([\d, ]+) ·", text, re.MULTILINE)[0].split(", ") for id, text in threats().items()}
    assert {row[0][0]: set(row[2].split(", ")) for row in table} == _by_what_is_said(said)


def test_all_ten_agentic_risks_are_there_and_their_threats_say_so_too() -> None:
    table = rows(part(MODEL, "OWASP's ten risks of agentic applications", 2))
    assert [row[0] for row in table] == [f"ASI{number:02d} {name}" for number, name in enumerate(RISKS, 1)]
    said = {id: re.findall(r"ASI\d\d", text.strip().splitlines()[0]) for id, text in threats().items()}
    assert {row[0][:5]: set(row[2].split(", ")) for row in table} == _by_what_is_said(said)


def _by_what_is_said(said: dict[str, list[str]]) -> dict[str, set[str]]:
    return {what: {id for id, words in said.items() if what in words} for what in {word for words in said.values() for word in words}}


# --- scores ----------------------------------------------------------------------------------------------------------------------------------


def scores() -> list[list[str]]:
    return rows(part(MODEL, "How bad: scores", 2))


def test_every_threat_against_which_something_is_built_has_a_score() -> None:
    built = [id for id, text in threats().items() if "**Control.** Not built yet" not in text]
    assert [row[0] for row in scores()] == built


@pytest.mark.parametrize("row", scores(), ids=lambda row: row[0])
def test_a_score_follows_from_its_factors(row: list[str]) -> None:
    _, _, base, factors, total, multiplier, before, mitigation, after = row
    values = [FACTORS[word] for word in factors.split()]
    assert len(values) == 10
    assert sum(values) == Decimal(total)
    assert multiplier in ("0.97", "1.00")
    assert mitigation in ("0.67", "0.83", "1.00")
    raised = Decimal(base) + (10 - Decimal(base)) * sum(values) / 10 * Decimal(multiplier)
    assert (before, after) == (_shown(raised), _shown(raised * Decimal(mitigation)))


def _shown(value: Decimal) -> str:
    return str(value.quantize(Decimal("0.1"), ROUND_HALF_UP))


def test_vectors_are_whole_and_equal_ones_have_equal_scores() -> None:
    bases: dict[str, str] = {}
    for _, vector, base, *_ in scores():
        given = dict(metric.split(":") for metric in vector.strip("`").split("/"))
        assert list(given) == list(METRICS)
        assert [metric for metric, value in given.items() if value not in METRICS[metric]] == []
        assert 0 < Decimal(base) <= 10
        assert bases.setdefault(vector, base) == base


def test_the_formula_that_is_computed_is_the_one_that_is_told() -> None:
    told = re.findall(r"^    (\w+) += (.*)$", part(MODEL, "How bad: scores", 2), re.MULTILINE)
    assert told == [
        ("sum", "the ten factors together, each 0, ½ or 1"),
        ("AARS", "(10 − base) × sum / 10 × ThM"),
        ("before", "base + AARS"),
        ("after", "before × mitigation"),
    ]
