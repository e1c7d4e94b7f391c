"""What the SDKs in other languages have of the wire: types, errors, sentences, commands, their version, and transcripts that prove them.

`make fix` writes them, `make check` compares.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from contract import commands, rust, transcripts, typescript, versions

REPO = Path(__file__).resolve().parents[1]


def wanted() -> dict[Path, str]:
    found = {REPO / "sdk/typescript/src/generated" / name: text for name, text in typescript.files().items()}
    found |= {REPO / "sdk/rust/src/generated" / name: text for name, text in rust.files().items()}
    found |= {REPO / "sdk/contract/transcripts" / name: text for name, text in transcripts.texts().items()}
    for place in ("sdk/typescript/src/generated/commands.json", "sdk/rust/src/generated/commands.json"):
        found[REPO / place] = commands.text()
    return found | versions.texts(REPO)


def main() -> int:
    made = wanted()
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(REPO)} is not what tools/make_contract.py makes: run make fix")
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
