"""Every attack, by the question that it answers. One file for each question."""

from __future__ import annotations

from ..attack import Group
from . import files, honesty, kernel, limits, network, programs, rights

GROUPS: tuple[Group, ...] = (files.GROUP, programs.GROUP, network.GROUP, rights.GROUP, kernel.GROUP, limits.GROUP, honesty.GROUP)
