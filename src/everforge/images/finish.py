"""From unpacked packages to a root file system: what Debian's maintainer scripts would have done, and what a machine can do without.

Everything here depends on the unpacked files alone, so that the same files always give the same image.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from everforge.progress import Progress

from .command import run_inside
from .recipe import Recipe

EPOCH_SECONDS = 1_700_000_000  # every file's time: one that changes later is told by it
USER, USER_ID = "user", 1000

_LINKS = {  # update-alternatives and package scripts would have made these
    "usr/bin/awk": ("gawk", "mawk"), "usr/bin/pager": ("less", "more"), "usr/bin/editor": ("nano",), "usr/bin/which": ("which.debianutils",),
    "usr/bin/python": ("python3",), "usr/bin/vi": ("vim.tiny",), "usr/bin/nawk": ("gawk", "mawk"),
}  # fmt: skip
_MERGED = ("bin", "sbin", "lib", "lib64")
_UNUSED = (
    "usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/lintian", "usr/share/bug", "usr/share/doc-base",
    "usr/share/i18n", "usr/share/pixmaps", "usr/share/icons", "usr/share/applications", "usr/share/initramfs-tools", "usr/share/systemtap",
    "usr/lib/systemd/system", "usr/lib/systemd/user", "usr/lib/udev", "usr/share/gdb", "var/lib/apt", "var/cache/apt", "var/cache/ldconfig",
    "var/cache/debconf", "etc/apt", "etc/cron.d", "etc/cron.daily", "etc/init.d", "etc/logrotate.d", "etc/kernel", "boot", "media", "mnt",
)  # fmt: skip


def finish(root: Path, recipe: Recipe, progress: Progress) -> None:
    progress.step("finishing the system's files")
    _remove_unused(root, recipe)
    _merge_usr(root)
    _link_alternatives(root)
    _write_accounts(root)
    _write_etc(root)
    _trust_certificates(root)
    run_inside(root, ["/usr/sbin/ldconfig", "-X", "-i"], "index the image's libraries")
    run_inside(root, ["/usr/sbin/ldconfig", "-i"], "index the image's libraries")
    shutil.rmtree(root / "var/cache/ldconfig", ignore_errors=True)
    progress.step("compiling the image's Python files")
    compile_python(root, [f"/usr/lib/python{recipe.python}", "/usr/lib/python3", f"/usr/local/lib/python{recipe.python}"])
    _make_font_list(root, recipe, progress)
    set_modes(root)
    _open_shared_folders(root)


def compile_python(root: Path, folders: list[str]) -> None:
    """Compiled once here, trusted unseen in every machine: an image's files do not change."""
    there = [folder for folder in folders if (root / folder.lstrip("/")).is_dir()]
    # Test data of some packages is wrong Python on purpose, and then compileall's exit code is 1.
    program = "import compileall, py_compile, sys; m = py_compile.PycInvalidationMode.UNCHECKED_HASH\n"
    program += "for folder in sys.argv[1:]: compileall.compile_dir(folder, quiet=2, force=True, invalidation_mode=m)"
    run_inside(root, ["/usr/bin/python3", "-I", "-B", "-c", program, *there], "compile the image's Python files")


def _remove_unused(root: Path, recipe: Recipe) -> None:
    for path in _UNUSED:
        shutil.rmtree(root / path, ignore_errors=True)
    (root / f"usr/lib/python{recipe.python}/EXTERNALLY-MANAGED").unlink(missing_ok=True)  # the machine's pip is the user's own
    for folder in ("dev", "proc", "sys", "run", "home", "root", "tmp", "var/tmp", "etc", "usr/local/bin", "var/lib", "var/cache/everforge", "opt"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for folder in ("dev", "run"):
        for entry in (root / folder).iterdir():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def _merge_usr(root: Path) -> None:
    for name in _MERGED:
        if not (root / name).exists() and (root / "usr" / name).exists():
            (root / name).symlink_to(f"usr/{name}")


def _link_alternatives(root: Path) -> None:
    for link, targets in _LINKS.items():
        for target in targets:
            path = root / link
            if not path.exists() and not path.is_symlink() and (path.parent / target).exists():
                path.symlink_to(target)


def _write_accounts(root: Path) -> None:
    masters = root / "usr/share/base-passwd"
    passwd = (masters / "passwd.master").read_text() if (masters / "passwd.master").exists() else "root:*:0:0:root:/root:/bin/bash\n"
    group = (masters / "group.master").read_text() if (masters / "group.master").exists() else "root:*:0:\n"
    (root / "etc/passwd").write_text(passwd.replace(":*:", ":x:") + f"{USER}:x:{USER_ID}:{USER_ID}:{USER}:/home/{USER}:/bin/bash\n")
    (root / "etc/group").write_text(group.replace(":*:", ":x:") + f"{USER}:x:{USER_ID}:\n")


def _write_etc(root: Path) -> None:
    etc, defaults = root / "etc", root / "usr/share/base-files"
    for name in ("nsswitch.conf", "profile", "motd"):
        if (defaults / name).exists() and not (etc / name).exists():
            shutil.copyfile(defaults / name, etc / name)
    (etc / "hostname").write_text("machine\n")
    (etc / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    (etc / "resolv.conf").unlink(missing_ok=True)  # a machine has no network unless its owner gives it one
    (etc / "shells").write_text("/bin/sh\n/bin/bash\n")
    (etc / "timezone").write_text("Etc/UTC\n")
    (etc / "localtime").unlink(missing_ok=True)
    (etc / "localtime").symlink_to("/usr/share/zoneinfo/Etc/UTC")
    (etc / "fstab").unlink(missing_ok=True)


def _trust_certificates(root: Path) -> None:
    authorities = sorted((root / "usr/share/ca-certificates/mozilla").glob("*.crt"))
    if not authorities:
        return
    certs = root / "etc/ssl/certs"
    certs.mkdir(parents=True, exist_ok=True)
    (certs / "ca-certificates.crt").write_text("".join(path.read_text().rstrip("\n") + "\n" for path in authorities))
    (root / "etc/ca-certificates.conf").write_text("".join(f"mozilla/{path.name}\n" for path in authorities))
    bundle = root / "usr/lib/ssl/cert.pem"
    if bundle.parent.is_dir() and not bundle.is_symlink():
        bundle.symlink_to("/etc/ssl/certs/ca-certificates.crt")


def _make_font_list(root: Path, recipe: Recipe, progress: Progress) -> None:
    """matplotlib looks at every font of the system on its first import, which takes seconds: done here once."""
    folder = recipe.env.get("MPLCONFIGDIR")
    if not folder or not (root / f"usr/local/lib/python{recipe.python}/dist-packages/matplotlib").is_dir():
        return
    progress.step("listing the image's fonts")
    place = root / folder.lstrip("/")
    place.mkdir(parents=True, exist_ok=True)
    run_inside(root, ["/usr/bin/python3", "-B", "-c", "import matplotlib.font_manager"], "list the image's fonts", env={"MPLCONFIGDIR": folder})
    for lock in place.glob("*.matplotlib-lock"):
        lock.unlink()


def set_modes(top: Path) -> None:
    """No setuid or setgid bit: nobody in a machine becomes somebody else. Everything is readable, for the user is not its owner."""
    for folder, folders, files in os.walk(top):
        for path in [folder, *(f"{folder}/{name}" for name in [*folders, *files])]:
            mode = os.lstat(path).st_mode
            if not stat.S_ISLNK(mode):
                Path(path).chmod(stat.S_IMODE(mode) & ~0o6022 | 0o444 | (0o111 if stat.S_ISDIR(mode) else 0))


def _open_shared_folders(root: Path) -> None:
    """The machine's user makes its own home at boot, since in a user namespace nobody else could give it one."""
    for path in ("tmp", "var/tmp", "home", "var/cache/everforge/matplotlib"):
        if (root / path).is_dir():
            (root / path).chmod(0o1777)


def settle_times(root: Path) -> None:
    """One time for everything, last of all: the digest leaves times out, and the quick check looks at them."""
    times = (EPOCH_SECONDS, EPOCH_SECONDS)
    for folder, folders, files in os.walk(root, topdown=False):
        for name in [*folders, *files]:
            os.utime(f"{folder}/{name}", times, follow_symlinks=False)
    os.utime(root, times)
