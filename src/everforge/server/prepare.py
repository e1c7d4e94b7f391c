"""What the first server of a data folder would otherwise do while somebody waits: the template of new machines.

Run as `python -m everforge.server.prepare`, by `make setup`.
"""

from __future__ import annotations

import sys

from everforge.machines.settings import MachineSettings
from everforge.wire.errors import DataFolderBusy, EverforgeError

from . import loop
from .bootstrap import close_machines, open_machines

LINGER_SECONDS = 1.0  # of the warden: no server is expected


async def prepare() -> str:
    """What there is now, for people."""
    try:
        machines, folder = await open_machines(settings=MachineSettings(ready_sandboxes=0), warden_linger_seconds=LINGER_SECONDS)
    except DataFolderBusy:
        return "is the running server's"
    await close_machines(machines, folder)
    return str(folder.snapshots / machines.templates.id(machines.settings.image, machines.settings.disk_mb))


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
