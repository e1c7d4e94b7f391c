"""Find runsc or have it built. A binary that the user names is taken or refused, never quietly replaced by another."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from everforge.folders import cache_folder
from everforge.progress import Progress
from everforge.wire.errors import EngineUnfit

from .build import build, cached_place
from .probe import ProbeOutcome, probe_runsc

VARIABLE = "EVERFORGE_RUNSC"


@dataclass(frozen=True, slots=True)
class FoundRunsc:
    path: Path
    source: Literal["named", "cache"]
    sha256: str


def find_or_build(progress: Progress, cache: Path | None = None) -> Path:
    """A runsc that has started, saved and restored a sandbox on this computer. Raises EngineUnfit, whose message says what to do."""
    cache = cache or cache_folder()
    found = find(cache)
    if found is None:
        path = build(cache, progress)
        found = FoundRunsc(path, "cache", digest_of(path))
    outcome = probe_once(found, cache, progress)
    if not outcome.fit:
        raise EngineUnfit(unfit_message(found, outcome))
    return found.path


def find(cache: Path) -> FoundRunsc | None:
    """The one that would be used now, without trying it; None when it must be built."""
    named = os.environ.get(VARIABLE)
    if named:
        path = Path(named).expanduser().absolute()
        if not path.is_file():
            raise EngineUnfit(f"{VARIABLE} names {named}, which is not a file; correct it, or unset it to have runsc built")
        if not os.access(path, os.X_OK):
            raise EngineUnfit(f"{VARIABLE} names {named}, which may not be executed; run `chmod +x {named}`, or unset {VARIABLE} to have runsc built")
        return FoundRunsc(path, "named", digest_of(path))
    path = cached_place(cache) / "runsc"
    try:
        sha256 = digest_of(path)
        # A disk that was full or a copy that was cut short: such a binary is no binary, and is built again.
        if (path.parent / "sha256").read_text(encoding="ascii").strip() == sha256 and os.access(path, os.X_OK):
            return FoundRunsc(path, "cache", sha256)
    except (OSError, ValueError):
        pass
    return None


def probe_once(found: FoundRunsc, cache: Path, progress: Progress) -> ProbeOutcome:
    """Try it, unless this very binary already passed on this kernel and for this kind of user. A failure is never remembered."""
    key = hashlib.sha256(json.dumps([found.sha256, platform.release(), os.geteuid() == 0]).encode()).hexdigest()[:32]
    place = cache / "runsc" / "probes" / f"{key}.json"
    try:
        return replace(ProbeOutcome(**json.loads(place.read_text(encoding="utf-8"))), remembered=True)
    except (OSError, ValueError, TypeError):
        pass
    progress.step("trying runsc: start, save, restore")
    outcome = probe_runsc(found.path)
    if outcome.fit:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            partial = place.with_suffix(f".partial-{os.getpid()}")
            partial.write_text(json.dumps(asdict(outcome)) + "\n", encoding="utf-8")
            partial.replace(place)
        except OSError:
            pass  # it is only remembered to save a second next time
    return outcome


def unfit_message(found: FoundRunsc, outcome: ProbeOutcome) -> str:
    if found.source == "cache":
        return f"the runsc built for this computer cannot be used: {outcome.message}; {outcome.remedy}"
    return (
        f"{VARIABLE} names {found.path}, which cannot be used: {outcome.message}; {outcome.remedy}, or unset {VARIABLE} to have a fitting one built"
    )


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
