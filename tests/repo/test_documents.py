"""The documents tell the truth: links lead somewhere, commands and targets exist, examples are what is run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from everforge.cli.app import app
from everforge.cli.helptexts import help_of
from everforge.images.recipe import load_recipe

REPO = Path(__file__).parents[2]
DOCUMENTS = [*sorted(REPO.glob("*.md")), *sorted((REPO / "docs").rglob("*.md"))]
README_LINES_MAX = 150


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)


def test_the_readme_is_short_and_begins_with_the_two_commands() -> None:
    text = (REPO / "README.md").read_text()
    assert len(text.splitlines()) < README_LINES_MAX
    assert [line.split("#")[0].strip() for line in blocks(REPO / "README.md", "sh")[0].splitlines()] == ["make run", "make test"]


def test_rust_in_the_readme_is_what_the_crates_own_readme_has() -> None:
    """Which is compiled with the crate's tests."""
    shown, compiled = blocks(REPO / "README.md", "rust"), blocks(REPO / "sdk/rust/README.md", "rust,no_run")
    assert shown
    assert [block for block in shown if block not in compiled] == []


def test_the_crates_readme_names_every_crate_that_its_examples_use() -> None:
    readme = REPO / "sdk/rust/README.md"
    named = {word for block in blocks(readme, "sh") for word in re.findall(r"^cargo add (\w+)", block, re.MULTILINE)}
    used = {word for block in blocks(readme, "rust,no_run") for word in re.findall(r"(?:\buse |#\[)(\w+)::", block)}
    assert {"everforge", "serde_json", "tokio"} <= used
    assert used - {"std"} <= named


def test_no_readme_of_a_package_names_its_version() -> None:
    """It would be one more place for it: what installs a package takes the newest."""
    for readme in ("README.md", "sdk/rust/README.md", "sdk/typescript/README.md"):
        assert re.findall(r"everforge(?:@| *= *[{\"].*?)\d.*", (REPO / readme).read_text()) == [], readme


def test_the_contract_names_files_that_there_are() -> None:
    contract = REPO / "sdk/contract"
    named = set(re.findall(r"`((?:\w+/)*\w+\.(?:py|json))`", (contract / "README.md").read_text()))
    assert {"scenario.json", "tools/make_parity.py"} <= named
    assert [name for name in sorted(named) if not (REPO / name).exists() and not (contract / name).exists()] == []


def test_what_only_node_has_is_told_in_the_typescript_guide() -> None:
    lists = re.findall(r"^export \{([^}]*)\}", (REPO / "sdk/typescript/src/node.ts").read_text(), re.MULTILINE)
    names = {name.strip() for one in lists for name in one.split(",")}
    assert {"findAccess", "signUp"} <= names
    guide = (REPO / "docs/typescript.md").read_text()
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", guide)] == []
    assert 'from "everforge/node";' in guide


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()) if "://" not in target]
    assert [target for target in targets if target and not (document.parent / target).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_make_target_named_exists(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPO / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"`make ([a-z-]+)", document.read_text()) + [
        word for block in blocks(document, "sh") for word in re.findall(r"^make ([a-z-]+)", block, re.M)
    ]
    assert set(named) <= targets


def commands(group: Any, above: str = "") -> dict[str, Any]:
    """By their words: `image`, `image build`."""
    found: dict[str, Any] = {}
    for name, command in getattr(group, "commands", {}).items():
        found |= {above + name: command, **commands(command, f"{above}{name} ")}
    return found


LEAVES = sorted(words for words, command in commands(get_command(app)).items() if not hasattr(command, "commands"))


def test_every_command_named_exists_and_has_help() -> None:
    known = commands(get_command(app))
    guides = [REPO / "README.md", REPO / "CHANGELOG.md", *sorted((REPO / "docs").glob("*.md"))]  # what people follow word by word
    named = {
        tuple(words.split()) for document in guides for words in re.findall(r"`(?:\.venv/bin/)?everforge ([a-z]+(?: [a-z]+)?)", document.read_text())
    }
    assert [words for words in named if words[0] not in known] == []
    assert [words for words in named if " ".join(words) not in known and hasattr(known[words[0]], "commands")] == []
    for words in known:
        assert CliRunner().invoke(app, [*words.split(), "--help"]).exit_code == 0, words


def test_the_reference_of_the_command_line_lists_exactly_the_commands_there_are() -> None:
    listed = re.findall(r"^### `everforge ([a-z ]+)`", (REPO / "docs/cli.md").read_text(), re.MULTILINE)
    assert sorted(listed) == LEAVES


@pytest.mark.parametrize("command", LEAVES)
def test_every_command_has_help_with_an_example_that_the_reference_gives_too(command: str) -> None:
    text = help_of([*command.split(), "--help"])
    assert text is not None
    [example] = re.findall(r"^  Example: (.*)$", text, re.MULTILINE)
    assert f"everforge {command}" in example
    assert example in (REPO / "docs/cli.md").read_text()


def test_the_recipe_shown_is_a_recipe(tmp_path: Path) -> None:
    [text] = blocks(REPO / "docs/images.md", "toml")
    (tmp_path / "mine.toml").write_text(text)
    assert "polars" in load_recipe(str(tmp_path / "mine.toml")).wheels


def test_decisions_are_numbered_and_short() -> None:
    records = sorted((REPO / "docs/decisions").glob("*.md"))
    assert [int(record.name[:4]) for record in records] == list(range(1, len(records) + 1))
    assert all(len(record.read_text().splitlines()) <= 30 for record in records)


def test_the_makefile_lists_every_target() -> None:
    text = (REPO / "Makefile").read_text()
    [phony] = re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    listed = subprocess.run(["make", "--no-print-directory", "-C", str(REPO)], capture_output=True, text=True).stdout
    assert sorted(re.findall(r"^  make ([a-z-]+)", listed, re.MULTILINE)) == sorted(phony.split())


def test_the_makefiles_list_has_its_texts_in_one_column() -> None:
    listed = subprocess.run(["make", "--no-print-directory", "-C", str(REPO)], capture_output=True, text=True).stdout
    columns = {found.end() if (found := re.match(r"  make [a-z-]+ {2,}", line)) else line for line in listed.splitlines()}
    assert len(columns) == 1, columns
