from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import everforge


def test_a_warden_starts_where_nothing_but_the_standard_library_is_installed() -> None:
    """It outlives servers and their upgrades: a library that was replaced under it must not matter."""
    sources = Path(everforge.__file__).parents[1]
    # -S: no site-packages.
    code = f"import sys; sys.path.append({str(sources)!r}); sys.argv[1:] = ['--help']; from everforge.engine.warden.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert "--data" in done.stdout, done.stderr
