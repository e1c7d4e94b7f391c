"""`everforge image lock`."""

from __future__ import annotations

from typing import Annotated

import typer


def lock(recipe: Annotated[str, typer.Argument(help="Name of a recipe, or path of a .toml file.")]) -> None:
    """Write down, beside the recipe, the newest packages that fit it for this kind of processor.

    Example: everforge image lock default
    """
    from everforge.images.build import lock_recipe
    from everforge.images.catalogue import Catalogue
    from everforge.images.recipe import load_recipe

    from ..progress import shown_progress

    with shown_progress() as progress:
        made = lock_recipe(recipe, Catalogue.here(), progress)
    print(f"{load_recipe(recipe).lock_path}: {len(made.debs)} Debian and {len(made.wheels)} Python packages for {made.architecture}")
