"""`make bench`, or `python -m bench [--quick] [--only 5,8]`. Exits with 0 when everything was measured, whether the goals are met or not."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from everforge.cli.progress import shown_progress
from everforge.progress import Progress
from everforge.server import loop
from everforge.wire.errors import EverforgeError

from . import report
from .goals import BY_KEY
from .house import opened
from .measure import Result
from .numbers import NUMBERS, Number


def chosen(only: str) -> list[Number]:
    """`5` means both halves of it."""
    wanted = {word.strip() for word in only.split(",") if word.strip()}
    known = set(BY_KEY) | {key.split("-")[0] for key in BY_KEY}
    if unknown := sorted(wanted - known):
        raise SystemExit(f"bench: there is no number {', '.join(unknown)}; there are {', '.join(BY_KEY)}")
    return [number for number in NUMBERS if not wanted or any(key in wanted or key.split("-")[0] in wanted for key in number.goals)]


async def measure(numbers: Sequence[Number], *, quick: bool, progress: Progress, parent: Path | None) -> list[Result]:
    results: list[Result] = []
    async with opened(progress, parent) as house:
        for number in numbers:
            progress.step(f"measuring {number.name}")
            results += await number.measure(house, number.quick if quick else number.samples)
            await house.delete_all()
    return results


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description="Measures the numbers of SPECIFICATION.md.")
    parser.add_argument("--quick", action="store_true", help="few samples: is the code right, not are the numbers")
    parser.add_argument("--only", default="", metavar="5,8", help="these numbers only; results.json keeps the others")
    parser.add_argument(
        "--folder", type=Path, help="where the data folder is made; the disk under it is what is measured (default: the temporary one)"
    )
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench: raw sandboxes are made without a warden, which needs root; run it as root", file=sys.stderr)
        return 3
    began = time.monotonic()
    try:
        with shown_progress() as progress:
            results = loop.run(measure(chosen(options.only), quick=options.quick, progress=progress, parent=options.folder))
    except EverforgeError as e:
        print(f"bench: {e.message}", file=sys.stderr)
        return 3
    console = Console()
    report.show(results, console)
    report.plot(results)
    file = report.QUICK if options.quick else report.RESULTS  # a handful of samples must not replace a measurement
    report.write(results, file)
    console.print(f"  [dim]{time.monotonic() - began:.0f} s; {file}, {report.PLOTS}/*.png[/dim]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
