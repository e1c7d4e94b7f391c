from __future__ import annotations

from pathlib import Path

import pytest

from everforge.engine.base import Image
from everforge.engine.gvisor.supply import find_or_build
from everforge.images.build import ensure
from everforge.images.catalogue import Catalogue
from everforge.progress import Silent


@pytest.fixture(scope="session")
def runsc() -> Path:
    return find_or_build(Silent())


@pytest.fixture(scope="session")
def minimal_image() -> Image:
    return ensure("minimal", Catalogue.here(), Silent()).image
