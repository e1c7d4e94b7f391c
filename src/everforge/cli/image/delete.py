"""`everforge image delete`."""

from __future__ import annotations

from typing import Annotated

import typer


def delete(image: Annotated[str, typer.Argument(help="Name of a recipe, or a digest or the beginning of one.")]) -> None:
    """Remove an image. Machines that were started from it can no longer wake until the same image is built again.

    Example: everforge image delete minimal
    """
    from everforge.images.catalogue import Catalogue

    gone = Catalogue.here().delete(image)
    print(f"deleted {gone.recipe} {gone.digest[:12]}")
