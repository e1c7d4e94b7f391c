"""Where things lie on this computer. Imports nothing of ours, changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

SYSTEM_DATA = Path("/var/lib/everforge")  # of a system service, which has no home


def cache_folder() -> Path:
    """What can be made again: runsc, packages. `EVERFORGE_CACHE`, else the user's cache folder."""
    return _chosen("EVERFORGE_CACHE") or _base("XDG_CACHE_HOME", ".cache")


def data_folder() -> Path:
    """What cannot: machines and their snapshots. `EVERFORGE_DATA`, else the user's data folder."""
    return _chosen("EVERFORGE_DATA") or _base("XDG_DATA_HOME", ".local/share")


def state_folder() -> Path:
    """What nobody misses for long: what was typed at the prompt, pictures shown. `EVERFORGE_STATE`, else the user's state folder."""
    return _chosen("EVERFORGE_STATE") or _base("XDG_STATE_HOME", ".local/state")


def images_folder(data: Path | None = None) -> Path:
    """The root file systems that machines live in. They would be missed as much as the machines: `EVERFORGE_IMAGES`, else beside these.

    Machines that lie elsewhere than usual (`data`, or `EVERFORGE_DATA`) share the images that are in the usual place, unless they have their own.
    """
    if chosen := _chosen("EVERFORGE_IMAGES"):
        return chosen
    own, usual = (data or data_folder()) / "images", _base("XDG_DATA_HOME", ".local/share") / "images"
    return usual if usual.is_dir() and not own.is_dir() else own


def _chosen(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value).expanduser().absolute() if value else None


def _base(variable: str, below_home: str) -> Path:
    value = os.environ.get(variable, "")
    # The XDG rules: a relative path there is to be ignored.
    if Path(value).is_absolute():
        return Path(value) / "everforge"
    try:
        return Path.home() / below_home / "everforge"
    except RuntimeError:
        return SYSTEM_DATA / Path(below_home).name
