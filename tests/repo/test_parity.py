"""The classes and methods of the three SDKs, side by side: a hole is noticed, wherever it is."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
sys.path.append(str(REPO / "tools"))
import make_parity  # noqa: E402  # pyright: ignore[reportMissingImports]


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """What parity is read from, to be changed."""
    for name in ("src/everforge/client", "sdk/typescript/src", "sdk/rust/src"):
        shutil.copytree(REPO / name, tmp_path / name)
    shutil.copy(REPO / "src/everforge/__init__.py", tmp_path / "src/everforge/__init__.py")
    return tmp_path


def test_the_three_sdks_have_the_same_and_the_page_says_so(sources: Path) -> None:
    assert make_parity.made(sources) == ((REPO / "docs/parity.md").read_text(), [])


LACKS = "add it, and export it, or explain it in tools/make_parity.py"


@pytest.mark.parametrize(
    ("path", "old", "new", "problems"),
    [
        ("sdk/typescript/src/surface.ts", 'export { Webhooks } from "./webhooks.js";', "", ["TypeScript does not export Webhooks"]),
        ("sdk/typescript/src/surface.ts", "export { Webhooks }", "export type { Webhooks }", ["TypeScript does not export Webhooks"]),
        ("sdk/typescript/src/surface.ts", "{ Display, Line,", "{ Display, type Line,", ["TypeScript does not export Line"]),
        ("sdk/typescript/src/surface.ts", "{ Accounts, Tokens }", "{ Accounts, Tokens as Keys }", ["TypeScript does not export Tokens"]),
        ("sdk/typescript/src/node.ts", "logIn, signUp", "logIn", [f"TypeScript lacks sign_up: {LACKS}"]),
        ("sdk/typescript/src/node.ts", "{ Access }", "{}", ["TypeScript does not export Access"]),
        ("sdk/typescript/src/webhooks.ts", "async test(", "private async test(", [f"TypeScript lacks Webhooks.test: {LACKS}"]),
        ("sdk/rust/src/lib.rs", "pub use webhooks::Webhooks;", "", ["Rust does not export Webhooks"]),
        ("sdk/rust/src/lib.rs", "pub use webhooks::Webhooks;", "use webhooks::Webhooks;", ["Rust does not export Webhooks"]),
        ("sdk/rust/src/lib.rs", "{Accounts, Tokens}", "{Accounts}", ["Rust does not export Tokens"]),
        ("sdk/rust/src/lib.rs", "{log_in, sign_up}", "{log_in}", [f"Rust lacks sign_up: {LACKS}"]),
        ("sdk/rust/src/webhooks.rs", "pub async fn test(", "async fn test(", [f"Rust lacks Webhooks.test: {LACKS}"]),
        (
            "sdk/rust/src/lib.rs",
            "pub mod config;",
            "mod config;",
            [
                "Rust does not export Access",
                *(f"Rust lacks {name}: {LACKS}" for name in ("config_path", "delete_config", "local_url", "write_config")),
            ],
        ),
    ],
)
def test_what_a_package_lacks_or_does_not_export_is_a_hole(sources: Path, path: str, old: str, new: str, problems: list[str]) -> None:
    text = (sources / path).read_text()
    assert old in text
    (sources / path).write_text(text.replace(old, new, 1))
    assert make_parity.made(sources)[1] == problems


SAY = "of which nothing is said: name it in CLASSES, FUNCTIONS or INNER (tools/contract/surface.py)"


@pytest.mark.parametrize(
    ("path", "more", "problems"),
    [
        ("client/_async/webhooks.py", "\nclass AsyncDeliveries:\n    def list(self) -> None: ...\n", [f"Python has Deliveries, {SAY}"]),
        ("client/results.py", "\nclass Table: ...\n", [f"Python has Table, {SAY}"]),
        ("client/_async/signup.py", "\nasync def sign_off() -> None: ...\n", [f"Python has sign_off, {SAY}"]),
        ("client/results.py", "\nclass _Table: ...\n", []),
        ("client/_async/door.py", "\ndef helper() -> None: ...\n", []),
        ("__init__.py", '\n__all__ = ["AsyncEverforge", "AsyncJobs"]\n', [f"Python has Jobs, {SAY}"]),
    ],
)
def test_what_python_has_anew_is_compared_or_explained(sources: Path, path: str, more: str, problems: list[str]) -> None:
    place = sources / "src/everforge" / path
    text = place.read_text()
    place.write_text((text.replace("\n__all__ =", "\n_ =") if "__all__" in more else text) + more)
    found = [problem for problem in make_parity.made(sources)[1] if "any more" not in problem]
    assert found == problems


def test_an_explanation_of_what_is_there_no_more_or_now_is_an_error(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_parity, "INSTEAD", {("Rust", "Everforge", "close"): "dropped", ("Rust", "Line", "never"): "`partial`"})
    monkeypatch.setattr(make_parity.surface, "INNER", {**make_parity.surface.INNER, "Gone": "it was there", "Line": "it is compared"})
    assert make_parity.made(sources)[1] == [
        "Python has no Gone any more: do not name it (tools/contract/surface.py)",
        "Line is compared, and so there is nothing to explain: take it out of INNER (tools/contract/surface.py)",
        "Rust Everforge close is there, or nowhere: take it out of INSTEAD in tools/make_parity.py",
        "Rust Line never is there, or nowhere: take it out of INSTEAD in tools/make_parity.py",
    ]


def test_a_hole_that_is_explained_is_none(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = sources / "sdk/rust/src/webhooks.rs"
    place.write_text(place.read_text().replace("pub async fn test(", "async fn test(", 1))
    monkeypatch.setattr(make_parity, "INSTEAD", {("Rust", "Webhooks", "test"): "`retry`"})
    text, problems = make_parity.made(sources)
    assert problems == []
    assert "| `test` | yes | yes | `retry` |" in text
