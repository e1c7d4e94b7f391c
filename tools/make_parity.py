"""docs/parity.md: the classes and methods of the three SDKs, side by side, from their sources. A hole is an error, unless it is explained here.

`make fix` writes it, `make check` compares.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from contract import surface

REPO = Path(__file__).resolve().parents[1]
TARGET = REPO / "docs" / "parity.md"
HEAD = """# The three SDKs, side by side

Made from their sources by `tools/make_parity.py`; a method that one of them lacks fails `make check`. TypeScript spells methods in camelCase
(`raiseForError`); data and options are spelled as on the wire in all three. That they also *do* the same is what the transcripts and the scenario in
`sdk/contract/` are for.
"""
LANGUAGES = ("Python", "TypeScript", "Rust")

# (language, class, member): what there is instead.
INSTEAD: dict[tuple[str, str, str], str] = {
    ("Rust", "Everforge", "close"): "dropped",
    ("Rust", "Line", "end"): "`partial`",
}


def main() -> int:
    found = dict(zip(LANGUAGES, (surface.python(REPO), surface.typescript(REPO), surface.rust(REPO)), strict=True))
    text, holes = HEAD, list[str]()
    for name in (*surface.CLASSES, ""):
        title = f"`{name}`" if name else "Functions"
        text += f"\n## {title}\n\n| | {' | '.join(LANGUAGES)} |\n|---|---|---|---|\n"
        for member in sorted(found["Python"][name]):
            cells = {language: _cell(language, name, member, member in found[language][name]) for language in LANGUAGES}
            text += f"| `{member}` | {' | '.join(cells.values())} |\n"
            holes += [f"{language} lacks {f'{name}.' if name else ''}{member}" for language, cell in cells.items() if not cell]
    for hole in holes:
        print(f"{hole}: add it, or explain it in tools/make_parity.py")
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text)
    elif not TARGET.exists() or TARGET.read_text() != text:
        print("docs/parity.md is not what tools/make_parity.py makes: run make fix")
        return 1
    return 1 if holes else 0


def _cell(language: str, name: str, member: str, there: bool) -> str:
    return "yes" if there else INSTEAD.get((language, name, member), "")


if __name__ == "__main__":
    sys.exit(main())
