"""Where each client keeps its configuration, on Linux, macOS and Windows. Pure: the computer is an argument, and nothing is looked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Literal

Platform = Literal["linux", "macos", "windows"]


@dataclass(frozen=True)
class Surroundings:
    """What of a computer decides where files lie."""

    platform: Platform
    home: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    packages: Sequence[str] = ()  # of Windows' own kind: the names of their folders

    def path(self, *parts: str) -> PurePath:
        return (PureWindowsPath if self.platform == "windows" else PurePosixPath)(*parts)

    def in_home(self, *parts: str) -> PurePath:
        return self.path(self.home, *parts)

    def folder(self, variable: str) -> PurePath | None:
        """That an environment variable names; one that is not absolute is nobody's, as the XDG rules have it."""
        path = self.path(self.env.get(variable, ""))
        return path if path.is_absolute() else None

    @property
    def roaming(self) -> PurePath:
        return self.folder("APPDATA") or self.in_home("AppData", "Roaming")

    @property
    def local(self) -> PurePath:
        return self.folder("LOCALAPPDATA") or self.in_home("AppData", "Local")

    @property
    def xdg(self) -> PurePath:
        return self.folder("XDG_CONFIG_HOME") or self.in_home(".config")

    @property
    def application_data(self) -> PurePath:
        """Where programs made with Electron have theirs."""
        return {"linux": self.xdg, "macos": self.in_home("Library", "Application Support"), "windows": self.roaming}[self.platform]


def claude_desktop(here: Surroundings) -> PurePath:
    """On Windows it mostly comes as a package, and then sees a folder of its own in place of the usual one."""
    packaged = sorted(name for name in here.packages if name.startswith("Claude_"))
    folder = here.application_data if not packaged else here.local / "Packages" / packaged[0] / "LocalCache" / "Roaming"
    return folder / "Claude" / "claude_desktop_config.json"


def claude_code(here: Surroundings) -> PurePath:
    return (here.folder("CLAUDE_CONFIG_DIR") or here.in_home()) / ".claude.json"


def goose(here: Surroundings) -> PurePath:
    """macOS is Linux to it."""
    root = here.folder("GOOSE_PATH_ROOT")
    if root is not None:
        return root / "config" / "config.yaml"
    return here.roaming / "Block" / "goose" / "config" / "config.yaml" if here.platform == "windows" else here.xdg / "goose" / "config.yaml"


def windsurf(here: Surroundings) -> PurePath:
    return here.in_home(".codeium", "windsurf", "mcp_config.json")


def cursor(here: Surroundings) -> PurePath:
    return here.in_home(".cursor", "mcp.json")


def vscode(here: Surroundings) -> PurePath:
    return here.application_data / "Code" / "User" / "mcp.json"


def zed(here: Surroundings) -> PurePath:
    """macOS has no say here: there it is always below the home folder."""
    folder = here.roaming / "Zed" if here.platform == "windows" else (here.xdg if here.platform == "linux" else here.in_home(".config")) / "zed"
    return folder / "settings.json"


def surroundings(system: str = sys.platform) -> Surroundings:
    """This computer."""
    names: dict[str, Platform] = {"win32": "windows", "darwin": "macos"}
    here = Surroundings(names.get(system, "linux"), str(Path.home()), dict(os.environ))
    return replace(here, packages=_packages(here)) if here.platform == "windows" else here


def _packages(here: Surroundings) -> list[str]:
    try:
        return [path.name for path in Path(here.local, "Packages").iterdir()]
    except OSError:
        return []
