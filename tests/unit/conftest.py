from __future__ import annotations

from hypothesis import settings

from kit.length import LONG

if LONG:
    settings.register_profile("long", max_examples=2000, deadline=None)
    settings.load_profile("long")
