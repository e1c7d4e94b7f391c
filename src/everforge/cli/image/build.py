"""`everforge image build`."""

from __future__ import annotations

from typing import Annotated

import typer


def build(
    recipes: Annotated[list[str] | None, typer.Argument(help="Names of recipes, or paths of .toml files; default when none is named.")] = None,
    locked: Annotated[bool, typer.Option("--locked", help="Fail rather than take packages other than the lock's.")] = False,
) -> None:
    """Build images from recipes, as their locks say. Those that are there already cost nothing.

    Example: everforge image build minimal
    """
    from everforge.images.build import ensure
    from everforge.images.catalogue import Catalogue

    from ..progress import shown_progress

    catalogue = Catalogue.here()
    with shown_progress() as progress:
        for recipe in recipes or ["default"]:
            image = ensure(recipe, catalogue, progress, locked)
            print(f"{image.recipe} {image.digest} {image.root}", flush=True)
