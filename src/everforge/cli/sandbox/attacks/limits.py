"""Can it use up my computer?"""

from __future__ import annotations

import os
from typing import Any

from ..attack import Attack, Group, Outcome, Seen, broken, held
from ..bait import Bait
from ..inside import attempt


def memory(bait: dict[str, Any]) -> dict[str, Any]:
    most_mb, kept, step_mb = int(bait["limits"]["memory_mb"] * 1.5), list[bytearray](), 64
    try:
        while len(kept) * step_mb < most_mb:
            kept.append(bytearray(step_mb << 20))
        return {"mb": len(kept) * step_mb, "stopped": "no"}
    except MemoryError:
        return {"mb": len(kept) * step_mb, "stopped": "MemoryError"}


def processes(bait: dict[str, Any]) -> dict[str, Any]:
    import signal

    made, why = list[int](), "no"
    try:
        while len(made) < int(bait["limits"]["processes"] * 1.5):
            child = os.fork()
            if child == 0:
                signal.pause()
                os._exit(0)
            made.append(child)
    except OSError as e:
        why = str(e.strerror)
    for child in made:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return {"made": len(made), "stopped": why}


def disk(bait: dict[str, Any]) -> dict[str, Any]:
    path = f"/tmp/{bait['mark']}full-{os.getpid()}"
    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        return {"why": attempt(lambda: os.posix_fallocate(handle, 0, int(bait["limits"]["disk_mb"] * 1.5) << 20))}
    finally:
        os.close(handle)
        os.unlink(path)


def memory_judge(seen: Seen, bait: Bait) -> Outcome:
    most = bait.limits["memory_mb"]
    if seen.text("stopped") == "no" or not 0 <= seen.number("mb") <= most:
        return broken(f"It got {seen.number('mb')} MB, more than the {most:.0f} MB that it may have.")
    return held(f"It got {seen.number('mb')} MB of the {most:.0f} MB that it may have; then it was told that there is no more.")


def processes_judge(seen: Seen, bait: Bait) -> Outcome:
    most = bait.limits["processes"]
    if seen.text("stopped") == "no" or not 0 <= seen.number("made") <= most:
        return broken(f"It started {seen.number('made')} programs, and may have {most:.0f}.")
    return held(f"It was stopped after {seen.number('made')}; it may have {most:.0f} at once.")


def disk_judge(seen: Seen, bait: Bait) -> Outcome:
    most = bait.limits["disk_mb"]
    if seen.text("why") not in ("ENOSPC", "EFBIG", "EDQUOT"):
        return broken(f"It took more than the {most:,.0f} MB of disk that it may have ({seen.text('why')}).")
    if bait.free_mb is not None and bait.free_mb < most:
        return broken(
            f"Its own disk may take {most:,.0f} MB, but the server's has only {bait.free_mb:,} MB free: this machine alone could fill it."
            " Give new machines a smaller disk (`disk_mb` in the server's settings), or the server a larger one."
        )
    return held(f"Its own disk of {most:,.0f} MB is full then; yours is not.")


GROUP = Group(
    "Can it use up my computer?",
    "No. It gets its share and not more; when that is gone it is told so, and your computer goes on.",
    (
        Attack("memory-bomb", "Take half as much memory again as it may have", memory, memory_judge, seconds=30),
        Attack("fork-bomb", "Start programs without end (a fork bomb)", processes, processes_judge, seconds=30),
        Attack("disk-fill", "Fill the disk", disk, disk_judge, seconds=30),
    ),
)
