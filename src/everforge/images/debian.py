"""Debian packages without installing any on the host: apt resolves and fetches in a folder of its own, as any user.

Maintainer scripts are never run (they need root and a live system); what they would have done is in finish.py.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
import urllib.parse
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from everforge.progress import Progress
from everforge.wire.errors import ImageBuildFailed

from .command import TIMEOUT_SECONDS, last_words, run
from .recipe import Deb, Recipe

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
APT_HELPER = Path("/usr/lib/apt/apt-helper")
FETCH_AT_ONCE = 12  # files to one call: enough to keep a connection busy, few enough to show progress
_RELEASES = r"(?:bullseye|bookworm|trixie|forky|duke|sid|oldstable|stable|testing|unstable)(?:-updates|-backports)?"
_APT_REMEDY = "check the network and the host's apt sources"


class Gone(ImageBuildFailed):
    """The mirror no longer has a locked file."""


def host_mirror(etc: Path = Path("/etc/apt")) -> str:
    """The Debian mirror this host is configured with: it is near, and reachable where others may not be. Raises ImageBuildFailed."""
    for path in [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]:
        if path.suffix in (".list", ".sources") and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            for uri, suites in _deb822(text) if path.suffix == ".sources" else _one_line(text):
                if any(re.fullmatch(_RELEASES, suite) for suite in suites):
                    return _resolve(uri).rstrip("/")
    raise ImageBuildFailed(f"no Debian mirror is configured in {etc}: add a `deb` line for Debian's main archive to sources.list, then build again")


def _one_line(text: str) -> Iterator[tuple[str, list[str]]]:
    for line in text.splitlines():
        if found := re.match(r"deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)\s+.*\bmain\b", line):
            yield found[1], [found[2]]


def _deb822(text: str) -> Iterator[tuple[str, list[str]]]:
    for stanza in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", stanza, re.MULTILINE))
        if "main" in fields.get("Components", "").split() and fields.get("URIs") and fields.get("Enabled", "yes") != "no":
            yield fields["URIs"].split()[0], fields.get("Suites", "").split()


def _resolve(uri: str) -> str:
    """Cloud images name their mirrors in a file; its first line is the preferred one."""
    if uri.startswith("mirror+file:"):
        try:
            lines = Path(urllib.parse.urlsplit(uri[len("mirror+") :]).path).read_text(encoding="utf-8").split()
        except OSError as e:
            raise ImageBuildFailed(f"the list of Debian mirrors that apt is configured with cannot be read: {e}") from e
        if not lines:
            raise ImageBuildFailed(f"the list of Debian mirrors {uri} is empty")
        return lines[0]
    return uri


@contextmanager
def _private_apt(recipe: Recipe, architecture: str, scratch: Path) -> Generator[list[str], None, None]:
    """Options that give apt a world of its own: our one source, nothing installed, no trace on the host."""
    if not KEYRING.is_file():
        raise ImageBuildFailed(f"the keys that sign Debian are missing ({KEYRING}); install the package debian-archive-keyring")
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch, prefix=".apt-") as folder:
        state = Path(folder)
        for name in ("lists/partial", "archives/partial"):
            (state / name).mkdir(parents=True)
        (state / "status").touch()
        (state / "sources.list").write_text(f"deb [signed-by={KEYRING} arch={architecture}] {host_mirror()} {recipe.suite} main\n")
        settings = {
            "Dir::State": state, "Dir::State::lists": state / "lists", "Dir::State::status": state / "status", "Dir::Cache": state,
            "Dir::Etc::sourcelist": state / "sources.list", "Dir::Etc::sourceparts": "-", "Dir::Etc::preferences": "-",
            "Dir::Etc::preferencesparts": "-", "APT::Architecture": architecture, "APT::Architectures": architecture,
            "APT::Sandbox::User": "", "Acquire::Languages": "none", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        }  # fmt: skip
        yield [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def resolve(recipe: Recipe, architecture: str, scratch: Path, progress: Progress) -> tuple[Deb, ...]:
    """The recipe's packages and all that they need, as the mirror has them now."""
    with _private_apt(recipe, architecture, scratch) as options:
        progress.step(f"reading the package lists of Debian {recipe.suite}")
        run(["apt-get", *options, "-q", "update", "-o", "APT::Update::Error-Mode=any"], "read Debian's package lists", _APT_REMEDY)
        progress.step("working out which packages are needed")
        listed = run(
            ["apt-get", *options, "-qq", "install", "--print-uris", "--yes", "--no-install-recommends", *recipe.debs],
            f"find the packages of the recipe {recipe.name!r}",
        )
        wanted = [urllib.parse.unquote(name).rsplit("_", 2) for name in re.findall(r"^'[^']*' (\S+)\.deb \d+", listed, re.MULTILINE)]
        shown = run(["apt-cache", *options, "show", *(f"{name}={version}" for name, version, _ in wanted)], "read the packages' hashes")
    return tuple(sorted((_described(stanza) for stanza in shown.split("\n\n") if stanza.strip()), key=lambda deb: deb.package))


def _described(stanza: str) -> Deb:
    fields = dict(re.findall(r"^([\w-]+): (.*)$", stanza, re.MULTILINE))
    return Deb(fields["Package"], fields["Version"], fields["Architecture"], fields["Filename"], int(fields["Size"]), fields["SHA256"])


def fetch(debs: Sequence[Deb], folder: Path, progress: Progress) -> dict[str, Path]:
    """Every file by its hash, from `folder` or the mirror. Raises Gone when the mirror lacks one."""
    folder.mkdir(parents=True, exist_ok=True)
    have = {deb.sha256: folder / f"{deb.sha256}.deb" for deb in debs}
    missing = [deb for deb in debs if not _is(have[deb.sha256], deb)]
    mirror = host_mirror()
    for start in range(0, len(missing), FETCH_AT_ONCE):
        progress.count(start, len(missing))
        _fetch_some(missing[start : start + FETCH_AT_ONCE], mirror, folder)
    return have


def _fetch_some(debs: Iterable[Deb], mirror: str, folder: Path) -> None:
    # apt's own fetcher, so that the host's proxies and credentials for its mirror are used. The hash is checked here as well.
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as partial:
        words: list[str] = []
        for deb in debs:
            words += [f"{mirror}/{urllib.parse.quote(deb.path)}", f"{partial}/{deb.sha256}", f"SHA256:{deb.sha256}"]
        argv = [str(APT_HELPER), "-o", "APT::Sandbox::User=", "-o", "Acquire::Retries=3", "download-file", *words]
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", timeout=TIMEOUT_SECONDS)
        except FileNotFoundError:
            raise ImageBuildFailed("could not fetch packages: apt is not installed; images are built on Debian and its relatives") from None
        except subprocess.TimeoutExpired:
            raise ImageBuildFailed(f"could not fetch packages within {TIMEOUT_SECONDS:.0f} seconds; {_APT_REMEDY}") from None
        for deb in debs:
            got = Path(partial) / deb.sha256
            if not _is(got, deb):
                failure = Gone if "404" in done.stderr else ImageBuildFailed
                raise failure(f"could not fetch {deb.package} {deb.version}: {last_words(done.stderr)}; {_APT_REMEDY}")
            got.chmod(0o644)
            got.replace(folder / f"{deb.sha256}.deb")


def _is(path: Path, deb: Deb) -> bool:
    try:
        if path.stat().st_size != deb.size_bytes:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == deb.sha256
    except OSError:
        return False


def unpack(files: Sequence[Path], root: Path, progress: Progress) -> None:
    """All files of all packages into `root`, owned by whoever unpacks them."""
    for number, file in enumerate(files):
        progress.count(number, len(files))
        reader = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", file], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            tar = ["tar", "-x", "-C", str(root), "--no-same-owner", "--same-permissions", "--keep-directory-symlink"]
            done = subprocess.run(tar, stdin=reader.stdout, capture_output=True, encoding="utf-8", errors="replace", timeout=TIMEOUT_SECONDS)
        finally:
            assert reader.stdout is not None
            reader.stdout.close()
            reader.wait()
        if done.returncode or reader.returncode:
            raise ImageBuildFailed(f"could not unpack {file.name}: {last_words(done.stderr)}")
