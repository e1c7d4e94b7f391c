"""The synchronous client from the asynchronous one: src/everforge/client/_sync/ from _async/, word by word.

    tools/make_sync.py            writes what differs
    tools/make_sync.py --check    writes nothing; exit code 1 when something differs

transport.py and socket.py are written by hand on both sides.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).parents[1]
SOURCE = REPO / "src/everforge/client/_async"
TARGET = REPO / "src/everforge/client/_sync"
BY_HAND = {"transport.py", "socket.py"}

PHRASES = [(r"\basync (def|with|for)\b", r"\1"), (r"\bawait ", ""), (r"\bAsyncGenerator\[([^\[\]]+)\]", r"Generator[\1, None, None]")]
WORDS = {
    "__aenter__": "__enter__", "__aexit__": "__exit__", "__aiter__": "__iter__", "__anext__": "__next__", "anext": "next", "aclosing": "closing",
    "StopAsyncIteration": "StopIteration", "AsyncIterator": "Iterator", "AsyncGenerator": "Generator",
}  # fmt: skip


def synchronous(text: str, name: str) -> str:
    for pattern, replacement in PHRASES:
        text = re.sub(pattern, replacement, text)
    text = re.sub(r"\w+", lambda word: WORDS.get(word[0], word[0]), text)
    text = re.sub(r"\bAsync([A-Z]\w+)", r"\1", text)
    if name == "__init__.py":
        return '"""Made from `_async/` by tools/make_sync.py, all but transport.py and socket.py; change it there."""\n'
    return f"# Made from _async/{name} by tools/make_sync.py; change it there.\n{text}"


def tidied(text: str, name: str) -> str:
    """Shorter names bring other line breaks and another order of imports."""
    path = str(TARGET / name)
    for command in (["check", "--quiet", "--fix", "--select", "I,F401", "--ignore", "RUF100"], ["format", "--quiet"]):
        ruff = [str(Path(sys.executable).parent / "ruff"), *command, "--stdin-filename", path, "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True, cwd=REPO).stdout
    return text


def main() -> int:
    wanted = {path.name: tidied(synchronous(path.read_text(), path.name), path.name) for path in SOURCE.glob("*.py") if path.name not in BY_HAND}
    present = {path.name: path.read_text() for path in TARGET.glob("*.py") if path.name not in BY_HAND}
    different = sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))
    if "--check" in sys.argv[1:]:
        for name in different:
            print(f"src/everforge/client/_sync/{name} is not what tools/make_sync.py makes: run make fix")
        return 1 if different else 0
    for name in different:
        if name in wanted:
            (TARGET / name).write_text(wanted[name])
        else:
            (TARGET / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
