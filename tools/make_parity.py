"""docs/parity.md: the classes and methods of the three SDKs, side by side, from their sources and what they export. A hole is an error, unless it is
explained here.

`make fix` writes it, `make check` compares.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from contract import surface

REPO = Path(__file__).resolve().parents[1]
HEAD = """# The three SDKs, side by side

Made by `tools/make_parity.py` from their sources and what they export; a method that one of them lacks fails `make check`. TypeScript spells methods
in camelCase (`raiseForError`); data and options are spelled as on the wire in all three. That they also *do* the same is what the transcripts and the
scenario in `sdk/contract/` are for.
"""
LANGUAGES = ("Python", "TypeScript", "Rust")

# (language, class, member): what there is instead.
INSTEAD: dict[tuple[str, str, str], str] = {}


def main() -> int:
    text, problems = made(REPO)
    for problem in problems:
        print(problem)
    target = REPO / "docs" / "parity.md"
    if "--check" not in sys.argv[1:]:
        target.write_text(text)
    elif not target.exists() or target.read_text() != text:
        print("docs/parity.md is not what tools/make_parity.py makes: run make fix")
        return 1
    return 1 if problems else 0


def made(repo: Path) -> tuple[str, list[str]]:
    """The page, and what is wrong."""
    found = dict(zip(LANGUAGES, (surface.python(repo), surface.typescript(repo), surface.rust(repo)), strict=True))
    text, problems = HEAD, [f"{problem} (tools/contract/surface.py)" for problem in surface.unexplained(repo)]
    explained = dict(INSTEAD)
    for name in (*surface.CLASSES, ""):
        title = f"`{name}`" if name else "Functions"
        text += f"\n## {title}\n\n| | {' | '.join(LANGUAGES)} |\n|---|---|---|---|\n"
        absent = [language for language in LANGUAGES if name not in found[language]]
        problems += [f"{language} does not export {name}" for language in absent]
        for member in sorted(found["Python"].get(name, ())):
            cells: list[str] = []
            for language in LANGUAGES:
                there = member in found[language].get(name, ())
                cells.append("yes" if there else explained.pop((language, name, member), ""))
                if not cells[-1] and language not in absent:
                    problems.append(f"{language} lacks {name and f'{name}.'}{member}: add it, and export it, or explain it in tools/make_parity.py")
            text += f"| `{member}` | {' | '.join(cells)} |\n"
    problems += [f"{' '.join(filter(None, one))} is there, or nowhere: take it out of INSTEAD in tools/make_parity.py" for one in explained]
    return text, problems


if __name__ == "__main__":
    sys.exit(main())
