"""`everforge image list`."""

from __future__ import annotations

from typing import Annotated

import typer


def list_images(json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """The images on this computer; a star marks the one that a recipe's name stands for.

    Example: everforge image list
    """
    from everforge.images.catalogue import Catalogue

    catalogue = Catalogue.here()
    images = catalogue.list()
    if json:
        from json import dumps

        rows = [
            {"recipe": image.recipe, "digest": image.digest, "present": catalogue.present(image.recipe) == image.digest, "root": str(image.root),
             "size_bytes": image.size_bytes, "python": image.python, "as_locked": image.as_locked, "created_at": image.created_at}
            for image in images
        ]  # fmt: skip
        print(dumps(rows, indent=1))
        return
    for image in images:
        mark = "*" if catalogue.present(image.recipe) == image.digest else " "
        note = "" if image.as_locked else "  (differs from its lock)"
        print(f"{mark} {image.recipe:12} {image.digest[:12]}  {image.size_bytes / 1e6:6.0f} MB  {image.created_at}{note}")
    if not images:
        print("no images yet; build one with `everforge image build`")
