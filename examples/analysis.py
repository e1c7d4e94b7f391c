"""A data analysis in a machine: a file goes in, a table and a picture come out, and a night passes in the middle.

With a server running (`make run`): .venv/bin/python examples/analysis.py --output results
"""

import argparse
import csv
import math
import random
from pathlib import Path

from everforge import Everforge, Machine

LOAD = """
import pandas as pd
readings = pd.read_csv("readings.csv", parse_dates=["time"])
readings["month"] = readings.time.dt.to_period("M").astype(str)
len(readings)
"""
SUMMARISE = """
table = readings.pivot_table(index="month", columns="station", values="celsius", aggfunc="mean").round(2)
table.to_csv("monthly.csv")
print(table.describe().loc[["min", "mean", "max"]])
"""
DRAW = """
import matplotlib.pyplot as plt
figure, axes = plt.subplots(figsize=(8, 4))
table.plot(ax=axes, marker="o", ylabel="°C", title="Mean temperature of each month")
plt.show()
"""


def write_readings(path: Path) -> None:
    """Two weather stations for a year, invented: the same numbers every time."""
    chance = random.Random(7)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["time", "station", "celsius"])
        for month in range(1, 13):
            for day in range(1, 29):
                season = -math.cos((month - 1) / 12 * math.tau)
                for station, mean, swing in (("harbour", 11, 6), ("summit", 1, 9)):
                    rows.writerow([f"2025-{month:02}-{day:02}", station, round(mean + swing * season + chance.gauss(0, 1.5), 2)])


def analyse(machine: Machine, output: Path) -> None:
    write_readings(output / "readings.csv")
    machine.files.upload(output / "readings.csv", "readings.csv")
    print("readings in the machine:", machine.run(LOAD, timeout_seconds=120).raise_for_error().value)
    for line in machine.stream(SUMMARISE):  # raises if the code does
        print(line)

    machine.hibernate()  # go home; tomorrow `table` is still there, and until then it costs disk only

    drawn = machine.run(DRAW, timeout_seconds=120).raise_for_error()
    for number, picture in enumerate((shown.png for shown in drawn.displays if shown.png), start=1):
        (output / f"figure-{number}.png").write_bytes(picture)
    machine.files.download("monthly.csv", output / "monthly.csv")
    print("written:", ", ".join(sorted(path.name for path in output.iterdir())))


def main() -> None:
    options = argparse.ArgumentParser(description="Analyses invented weather in a machine.")
    options.add_argument("--output", type=Path, default=Path("analysis"), help="folder for the table and the picture")
    output: Path = options.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    with Everforge() as client:
        machine = client.create(tags={"example": "analysis"})
        try:
            analyse(machine, output)
        finally:
            machine.delete()  # without this it would sleep until it is wanted again


if __name__ == "__main__":
    main()
