"""The examples do what they say: each is run against a real server, as its reader would run it."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from everforge import Everforge, EverforgeError
from kit.cargo import needs_cargo
from kit.commandserver import CommandServer, command_server
from kit.frameworks import DRIVERS, Access, anthropic, openai
from kit.sdks import TypeScript, rust_example, typescript_sdk

pytestmark = [pytest.mark.gvisor, pytest.mark.timeout(2700)]  # from nothing, the SDKs are built first
EXAMPLES = Path(__file__).parents[2] / "examples"
PNG = b"\x89PNG\r\n\x1a\n"
RUN_SECONDS = 240
DRAW = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 4])\nplt.show()\ntotal + 1"


@pytest.fixture(scope="module")
def server() -> Iterator[CommandServer]:
    with command_server() as served:
        yield served


@pytest.fixture
def client(server: CommandServer) -> Iterator[Everforge]:
    with Everforge(server.token, server.url) as client:
        yield client


@pytest.fixture
def access(server: CommandServer, client: Everforge) -> Access:
    return Access(server.token, server.url, client.create().name)


def run(server: CommandServer, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Where its reader has said which server it is, and nothing else is known."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("EVERFORGE_", "FOREVERVM_"))}
    environment |= {"EVERFORGE_TOKEN": server.token, "EVERFORGE_URL": server.url, "HOME": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=RUN_SECONDS)


# --- programs ----------------------------------------------------------------------------------------------------------------------------------


def test_the_first_machine_remembers_sleeps_forks_and_goes_back(server: CommandServer, client: Everforge, tmp_path: Path) -> None:
    before = {found.name for found in client.machines()}
    done = run(server, tmp_path, sys.executable, str(EXAMPLES / "first_machine.py"))
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[1:] == [
        "state stays between instructions: sum(numbers) = 6",
        "it sleeps: asleep with 0 bytes of memory",
        "the next instruction wakes it, and it remembers: [1, 2, 3, 4]",
        "the fork has 'something else' and the first machine [1, 2, 3, 4]",
        "a mistake is rolled back: [1, 2, 3, 4]",
        *(f"as it comes: {word}" for word in ("output", "line", "by", "line")),
    ]
    assert {found.name for found in client.machines()} == before


def test_the_analysis_leaves_a_table_and_a_picture_and_no_machine(server: CommandServer, client: Everforge, tmp_path: Path) -> None:
    before = {found.name for found in client.machines()}
    done = run(server, tmp_path, sys.executable, str(EXAMPLES / "analysis.py"), "--output", "results/today")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[0] == "readings in the machine: 672"
    assert done.stdout.splitlines()[-1] == "written: figure-1.png, monthly.csv, readings.csv"
    results = tmp_path / "results" / "today"
    assert (results / "figure-1.png").read_bytes().startswith(PNG)
    assert monthly_means(results / "readings.csv") == {
        (row["month"], station): float(row[station])
        for row in csv.DictReader((results / "monthly.csv").open())
        for station in ("harbour", "summit")
    }  # fmt: skip
    assert {found.name for found in client.machines()} == before


def monthly_means(readings: Path) -> dict[tuple[str, str], object]:
    """The same table without pandas."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in csv.DictReader(readings.open()):
        found.setdefault((row["time"][:7], row["station"]), []).append(float(row["celsius"]))
    return {key: pytest.approx(sum(values) / len(values), abs=0.006) for key, values in found.items()}


def test_an_analysis_that_fails_says_why_and_leaves_no_machine(server: CommandServer, client: Everforge, tmp_path: Path) -> None:
    before = {found.name for found in client.machines()}
    broken = (EXAMPLES / "analysis.py").read_text().replace('values="celsius"', 'values="kelvin"')
    done = run(server, tmp_path, sys.executable, "-c", broken)
    assert done.returncode == 1
    assert "KeyError: 'kelvin'" in done.stderr.splitlines()[-1]
    assert {found.name for found in client.machines()} == before


# --- in TypeScript -----------------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def typescript() -> TypeScript:
    return typescript_sdk()


def compiled(sdk: TypeScript, folder: Path, text: str) -> Path:
    """By a strict compiler, in a project that has the package installed."""
    (folder / "node_modules" / "@types").mkdir(parents=True)
    (folder / "node_modules" / "everforge").symlink_to(sdk.folder)
    (folder / "node_modules" / "@types" / "node").symlink_to(sdk.folder / "node_modules" / "@types" / "node")
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "agent-tool.ts").write_text(text)
    options = ["--strict", "--noUncheckedIndexedAccess", "--module", "nodenext", "--target", "es2022", "--types", "node", "--erasableSyntaxOnly"]
    compiler = [sdk.node, sdk.folder / "node_modules" / "typescript" / "bin" / "tsc"]
    done = subprocess.run(
        [*compiler, *options, "--outDir", "built", "agent-tool.ts"], cwd=folder, capture_output=True, text=True, timeout=RUN_SECONDS
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return folder / "built" / "agent-tool.js"


def test_the_agent_looks_at_its_error_repairs_its_code_and_leaves_a_picture(
    server: CommandServer, client: Everforge, typescript: TypeScript, tmp_path: Path
) -> None:
    before = {found.name for found in client.machines()}
    program = compiled(typescript, tmp_path, (EXAMPLES / "agent-tool.ts").read_text())
    done = run(server, tmp_path, str(typescript.node), str(program), "results/pictures")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [
        "call 1 went well: done, nothing was shown",
        "call 2 failed: KeyError: 'Column not found: price'",
        "call 3 went well: {'cake': 450, 'tea': 650}, call-3-1.png",
        "What was spent on each item: {'cake': 450, 'tea': 650}",
    ]
    assert (tmp_path / "results" / "pictures" / "call-3-1.png").read_bytes().startswith(PNG)
    assert {found.name for found in client.machines()} == before


def test_an_agent_that_does_not_come_to_an_end_is_ended_and_leaves_no_machine(
    server: CommandServer, client: Everforge, typescript: TypeScript, tmp_path: Path
) -> None:
    before = {found.name for found in client.machines()}
    stubborn = (EXAMPLES / "agent-tool.ts").read_text().replace('? "cents" : "price"', '? "price" : "price"')
    done = run(server, tmp_path, str(typescript.node), str(compiled(typescript, tmp_path, stubborn)))
    assert done.returncode == 1
    assert "The model did not come to an end in 10 turns" in done.stderr
    assert {found.name for found in client.machines()} == before


# --- in Rust -----------------------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ci_check() -> str:
    return str(rust_example("ci_check"))


def project(folder: Path, **files: str) -> Path:
    made = folder / "shop"
    for name, text in files.items():
        (made / f"{name}.py").parent.mkdir(parents=True, exist_ok=True)
        (made / f"{name}.py").write_text(text)
    return made


PRICES = "def total(prices):\n    return sum(prices)\n"
TESTS = """
import os, unittest
from prices import total

class Totals(unittest.TestCase):
    def test_1(self): self.assertEqual(total([]), 0)
    def test_2(self): self.assertEqual(total([3, 4]), 7)
    def test_3(self): self.assertEqual(total([-1, 1]), 0)
    def test_4(self): self.assertEqual(os.path.basename(os.getcwd()), "project")
"""


@needs_cargo
def test_a_project_whose_tests_pass_passes_each_test_in_one_of_two_forks(
    server: CommandServer, client: Everforge, ci_check: str, tmp_path: Path
) -> None:
    before = {found.name for found in client.machines()}
    done = run(server, tmp_path, ci_check, str(project(tmp_path, prices=PRICES, test_prices=TESTS)))
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    lines = done.stdout.splitlines()
    assert lines[0] == "4 tests found"
    for half, tests in ((1, "13"), (2, "24")):
        of_it = [line.removeprefix(f"half {half}: ") for line in lines if line.startswith(f"half {half}: ")]
        assert [line.partition(" ")[0] for line in of_it if line.endswith("... ok")] == [f"test_{number}" for number in tests]
        assert of_it[-1] == "OK"
    assert {found.name for found in client.machines()} == before


@needs_cargo
@pytest.mark.parametrize("broken", ["-1, 1]), 0", "3, 4]), 7"], ids=["in the first half", "in the second half"])
def test_a_project_in_which_one_test_fails_does_not_pass(
    server: CommandServer, client: Everforge, ci_check: str, tmp_path: Path, broken: str
) -> None:
    before = {found.name for found in client.machines()}
    done = run(server, tmp_path, ci_check, str(project(tmp_path, prices=PRICES, test_prices=TESTS.replace(broken, "1]), 2"))))
    assert done.returncode == 1, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert "AssertionError: 1 != 2" in done.stdout
    assert done.stdout.count("FAILED (failures=1)") == 1
    assert {found.name for found in client.machines()} == before


@needs_cargo
def test_a_project_that_cannot_be_tested_does_not_pass_either(server: CommandServer, client: Everforge, ci_check: str, tmp_path: Path) -> None:
    before = {found.name for found in client.machines()}
    assert run(server, tmp_path, ci_check, str(project(tmp_path / "no tests", prices=PRICES))).returncode == 1
    lacking = run(server, tmp_path, ci_check, str(project(tmp_path / "lacking", test_prices=TESTS)))
    assert (lacking.returncode, "No module named 'prices'" in lacking.stdout) == (1, True)
    nowhere = run(server, tmp_path, ci_check, str(tmp_path / "nowhere"))
    assert (nowhere.returncode, nowhere.stderr.startswith("The tests could not be run: ")) == (3, True)
    assert run(server, tmp_path, ci_check).returncode == 2
    assert {found.name for found in client.machines()} == before


# --- adapters ----------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("framework", DRIVERS)
def test_a_model_reads_what_its_code_did_repairs_it_and_finds_what_it_left(framework: str, access: Access) -> None:
    kept, broken, drawn = DRIVERS[framework](access, ["total = 41", "total + missing", DRAW])
    assert (kept.text, kept.failed) == ("done, nothing was shown", False)
    assert broken.failed
    assert "Traceback" in broken.text
    assert "NameError: name 'missing' is not defined" in broken.text
    assert (drawn.text.splitlines()[-1], drawn.failed) == ("42", False)
    assert [picture[:8] for picture in drawn.pictures] == [PNG]
    assert kept.pictures == broken.pictures == []


@pytest.mark.parametrize("framework", DRIVERS)
def test_of_very_much_output_a_model_reads_the_end(framework: str, access: Access) -> None:
    [seen] = DRIVERS[framework](access, ["print('x' * 100_000)\n'the end'"])
    assert len(seen.text) == 20_000
    assert seen.text.endswith("x\n'the end'")


@pytest.mark.parametrize("framework", DRIVERS)
def test_what_no_model_can_repair_reaches_the_program(framework: str, access: Access, client: Everforge) -> None:
    client.machine(access.machine).delete()
    with pytest.raises(EverforgeError) as raised:
        DRIVERS[framework](access, ["1"])
    assert raised.value.code == "MachineNotFound"


@pytest.mark.parametrize("drive", [openai, anthropic], ids=["openai", "anthropic"])
def test_a_model_that_never_ends_is_ended(drive: Callable[..., object], access: Access) -> None:
    with pytest.raises(RuntimeError, match=f"did not come to an end in 2 turns; machine {access.machine} has what it did so far"):
        drive(access, ["1"] * 5, turns_max=2)
