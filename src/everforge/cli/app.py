"""Which commands there are."""

from __future__ import annotations

from typing import Annotated

import typer

from . import doctor, logs, serve, setup
from .image import build, delete, lock, show

app = typer.Typer(
    name="everforge", help="Python machines that never forget, on hardware you own.", no_args_is_help=True, rich_markup_mode=None,
    pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
image = typer.Typer(help="The root file systems that machines start from.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(image, name="image")
machine = typer.Typer(help="Machines: Python processes that never forget.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(machine, name="machine")

app.command("setup")(setup.setup)
app.command("doctor")(doctor.doctor)
app.command("serve")(serve.serve)
app.command("settings")(serve.settings)
machine.command("logs")(logs.logs)
image.command("build")(build.build)
image.command("list")(show.list_images)
image.command("lock")(lock.lock)
image.command("delete")(delete.delete)


@app.callback(invoke_without_command=True)
def everforge(version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False) -> None:
    if version:
        from everforge import __version__

        print(f"everforge {__version__}")
        raise typer.Exit
