"""Every tool there is."""

from __future__ import annotations

from typing import Any

from . import code, egress, files, forevervm, machines, output, points, transfers
from .base import Tool

EVERYWHERE: tuple[Tool[Any], ...] = (
    code.RUN, output.READ, output.INTERRUPT, code.INSTALL, files.LIST, files.READ, files.WRITE, machines.LIST, machines.NEW, machines.USE,
    machines.FORK, points.SNAPSHOT, points.LIST, points.ROLLBACK, points.RESET, machines.DELETE, egress.SHOW, forevervm.CREATE, forevervm.RUN,
)  # fmt: skip
SHARING: tuple[Tool[Any], ...] = (transfers.UPLOAD, transfers.DOWNLOAD)


def tools_of(*, sharing: bool) -> dict[str, Tool[Any]]:
    """By name. Those that touch files of this computer only where a folder of it is shared."""
    return {tool.name: tool for tool in (*EVERYWHERE, *(SHARING if sharing else ()))}
