"""A table for people, bench/results.json for machines, and a picture of the samples of each number."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from .measure import Result, quartiles

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results.json"
PLOTS = FOLDER / "results"  # not kept in the repository
QUICK = PLOTS / "quick.json"


def show(results: Sequence[Result], console: Console) -> None:
    table = Table(title="Everforge: ratios of medians, each taken in one run", title_justify="left", title_style="bold")
    table.add_column("#", no_wrap=True)
    table.add_column("what / against what", min_width=16)
    table.add_column("ours / against", no_wrap=True)
    for heading in ("ratio", "goal"):
        table.add_column(heading, justify="right", no_wrap=True)
    for found in results:
        ratio = f"[green]{found.value:.3g} ✓[/green]" if found.holds else f"[red]{found.value:.3g} ✗[/red]"
        name = found.goal.name + (" [dim](extra)[/dim]" if found.goal.extra else "")
        sides = "\n".join(_spread(side, found.unit) for side in (found.ours, found.theirs) if side)
        table.add_row(found.goal.key, name, sides, ratio, found.goal.bound)
    console.print(table)
    for found in results:
        notes = "".join(f", {name} {value:.3g}" for name, value in found.notes.items())
        console.print(f"  [dim]{found.goal.key}: {' / '.join(filter(None, found.sides))}; {found.samples} samples{notes}[/dim]")
    console.print(f"  [dim]in brackets: quartiles. {os.cpu_count()} processors, Linux {platform.release()}, load {os.getloadavg()[0]:.1f}[/dim]")


def _spread(samples: Sequence[float], unit: str) -> str:
    low, middle, high = quartiles(samples)
    return f"{_short(middle)} {unit} [dim]({_short(low)}-{_short(high)})[/dim]"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def write(results: Sequence[Result], file: Path = RESULTS) -> None:
    """Numbers that were not measured this time stay as they were."""
    new = {found.goal.key: found.as_json() for found in results}
    kept = [entry for entry in read(file) if entry["key"] not in new]
    entries = sorted([*kept, *new.values()], key=lambda entry: (entry["extra"], entry["number"] or 0, entry["key"]))
    file.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(file: Path = RESULTS) -> list[dict[str, Any]]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else []


def plot(results: Sequence[Result], folder: Path = PLOTS) -> list[Path]:
    # Here and not above: it would take memory, and share pages with a kernel that is measured.
    import matplotlib as mpl

    mpl.use("Agg")
    folder.mkdir(exist_ok=True)
    return [_plot_samples(found, folder / f"{found.goal.key}.png") for found in results] + [_plot_ratios(results, folder / "all.png")]


def _plot_samples(found: Result, file: Path) -> Path:
    import matplotlib.pyplot as plt

    pyplot: Any = plt
    figure, axes = pyplot.subplots(figsize=(8, 3.2), layout="constrained")
    for samples, label, colour in ((found.ours, found.sides[0], "tab:blue"), (found.theirs, found.sides[1], "tab:orange")):
        if not samples:
            continue
        axes.plot(range(len(samples)), samples, ".", color=colour, alpha=0.6, label=label)
        axes.axhline(quartiles(samples)[1], color=colour, linewidth=1)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("sample, in the order taken")
    axes.set_ylabel(found.unit)
    axes.set_title(f"{found.goal.key}: {found.goal.name}\n{found.value:.3g}, goal {found.goal.bound}", fontsize=9, loc="left")
    axes.legend(fontsize=8)
    figure.savefig(file, dpi=120)
    pyplot.close(figure)
    return file


def _plot_ratios(results: Sequence[Result], file: Path) -> Path:
    """Every ratio as a part of its goal: left of the line it holds."""
    import matplotlib.pyplot as plt

    pyplot: Any = plt
    figure, axes = pyplot.subplots(figsize=(8, 0.5 * len(results) + 1.2), layout="constrained")
    parts = [found.value / found.goal.goal if found.goal.better == "less" else found.goal.goal / found.value for found in results]
    axes.barh([found.goal.key for found in results], parts, color=["tab:green" if found.holds else "tab:red" for found in results])
    for index, found in enumerate(results):
        axes.text(parts[index], index, f" {found.value:.3g} ({found.goal.bound})", va="center", fontsize=8)
    axes.axvline(1, color="black", linewidth=1)
    axes.invert_yaxis()
    axes.set_xlim(right=max([1.0, *parts]) * 1.25)
    axes.set_xlabel("share of the goal: up to 1 it holds")
    figure.savefig(file, dpi=120)
    pyplot.close(figure)
    return file
