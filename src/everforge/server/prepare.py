"""What the first server of a data folder would otherwise do while somebody waits: the template of new machines.

Run as `python -m everforge.server.prepare`, by `make setup`.
"""

from __future__ import annotations

import sys

from everforge.folders import data_folder
from everforge.machines.settings import MachineSettings
from everforge.wire.errors import DataFolderBusy, EverforgeError

from . import loop
from .bootstrap import make_template


async def prepare() -> str:
    """What there is now, for people."""
    try:
        return str(await make_template(data_folder(), MachineSettings()))
    except DataFolderBusy:
        return "is the running server's"


def main() -> int:
    try:
        print(f"template {loop.run(prepare())}")
    except KeyboardInterrupt:
        return 130
    except EverforgeError as e:  # a server will say it again, where it matters
        print(f"setup: there is no template for new machines yet: {e.message}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
