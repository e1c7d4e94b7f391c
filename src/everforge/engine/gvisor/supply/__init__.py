"""Where runsc comes from: named by the user, found in the cache, or built from its pinned source; and in each case tried live before it is used."""

from __future__ import annotations

from .find import FoundRunsc, find, find_or_build
from .probe import ProbeOutcome, namespace_problem, namespace_remedy, probe_runsc

__all__ = ["FoundRunsc", "ProbeOutcome", "find", "find_or_build", "namespace_problem", "namespace_remedy", "probe_runsc"]
