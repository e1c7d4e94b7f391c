"""`everforge setup`: everything that machines need on this computer."""

from __future__ import annotations

from typing import Annotated

import typer


def setup(
    recipes: Annotated[list[str] | None, typer.Argument(help="Recipes to build images from; default and minimal when none is named.")] = None,
) -> None:
    """Find or build runsc, try it, and build the images. Safe to repeat; seconds when nothing is missing.

    Example: everforge setup
    """
    from everforge.engine.gvisor.supply import find_or_build
    from everforge.images.build import ensure
    from everforge.images.catalogue import Catalogue

    from .progress import shown_progress

    with shown_progress() as progress:
        runsc = find_or_build(progress)
        print(f"runsc    {runsc}", flush=True)
        catalogue = Catalogue.here()
        for recipe in recipes or ["default", "minimal"]:
            image = ensure(recipe, catalogue, progress)
            print(f"{image.recipe:8} {image.root}", flush=True)
