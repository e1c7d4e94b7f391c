"""Can it see my files?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..attack import Attack, Group, Judge, Outcome, Seen, broken, held, refused
from ..bait import Bait
from ..inside import attempt, call, read


def by_name(bait: dict[str, Any]) -> dict[str, Any]:
    return {"found": read(bait["file"]), "folder": attempt(lambda: os.listdir(os.path.dirname(bait["file"])))}


def by_search(bait: dict[str, Any]) -> dict[str, Any]:
    looked, found = 0, list[str]()
    for folder, folders, files in os.walk(bait["root"]):
        if folder == "/":
            folders[:] = [name for name in folders if name not in ("proc", "sys")]  # no disks: they are searched by other attacks
        looked += len(files)
        found += [read(f"{folder}/{name}") for name in files if name.startswith(bait["mark"])]
    return {"looked": looked, "found": found}


def by_side_doors(bait: dict[str, Any]) -> dict[str, Any]:
    ways = [
        "/proc/1/root",
        "/proc/self/root",
        "/proc/1/cwd",
        "/proc/self/cwd/../../../../../..",
        "/../../../../..",
        "/host",
        "/mnt",
        "/rootfs",
        "/..",
    ]
    return {"ways": len(ways), "found": [read(way + bait["file"]) for way in ways]}


def by_a_link(bait: dict[str, Any]) -> dict[str, Any]:
    link = Path(f"/tmp/{bait['mark']}link-{os.getpid()}")
    os.symlink(bait["file"], link)
    try:
        return {"found": read(link)}
    finally:
        link.unlink()


def disks(bait: dict[str, Any]) -> dict[str, Any]:
    import stat

    def is_disk(path: str) -> bool:
        try:
            return stat.S_ISBLK(os.stat(path).st_mode)
        except OSError:
            return False

    found = [f"/dev/{name}" for name in os.listdir("/dev") if is_disk(f"/dev/{name}")]
    made = f"/tmp/{bait['mark']}disk-{os.getpid()}"
    tried = dict[str, str]()
    for line in read("/proc/partitions").splitlines()[2:4] or ["8 0 1 sda", "254 0 1 vda"]:  # the usual ones, where none are listed
        major, minor = (int(word) for word in line.split()[:2])
        tried[f"{major}:{minor}"] = attempt(lambda major=major, minor=minor: os.mknod(made, 0o600 | stat.S_IFBLK, os.makedev(major, minor)))
        if os.path.lexists(made):
            os.unlink(made)
    return {"found": found, "made": [name for name, why in tried.items() if why == "done"]}


def mounts(bait: dict[str, Any]) -> dict[str, Any]:
    folder = f"/tmp/{bait['mark']}mount-{os.getpid()}"
    os.mkdir(folder)
    try:
        bound = call("mount", b"/", folder.encode(), None, 4096, None)  # MS_BIND
        if bound == "done":
            call("umount2", folder.encode(), 0)
    finally:
        os.rmdir(folder)
    return {"mount": bound}


def not_found(sentence: str) -> Judge:
    def judge(seen: Seen, bait: Bait) -> Outcome:
        return broken("It read the file on your computer.") if bait.seen_in(seen.fact) else held(sentence)

    return judge


def search_judge(seen: Seen, bait: Bait) -> Outcome:
    if bait.seen_in(seen.fact):
        return broken("It found the file on your computer.")
    if seen.number("looked") < 1000:
        return broken(f"It looked at {seen.number('looked')} files only, which is no search.")
    return held(f"It looked at all {seen.number('looked'):,} files it can see; the one on your computer is not among them.")


def disks_judge(seen: Seen, bait: Bait) -> Outcome:
    if seen.texts("found") or seen.texts("made"):
        return broken(f"It has a disk to read: {', '.join(seen.texts('found') + seen.texts('made'))}.")
    return held("There is no disk in it, and it may not make one.")


GROUP = Group(
    "Can it see my files?",
    "No. It has a disk of its own, made from a fixed image; yours is not there at all.",
    (
        Attack(
            "file-by-name",
            "Read a file on your computer, of which it was told the exact place",
            by_name,
            not_found("No such file: your folders are not there."),
        ),
        Attack("file-by-search", "Search every folder it can see for that file", by_search, search_judge),
        Attack(
            "file-by-side-doors", "Reach it by nine back doors that badly built sandboxes have", by_side_doors, not_found("None of them leads out.")
        ),
        Attack("file-by-link", "Make a shortcut that points at it, and follow that", by_a_link, not_found("The shortcut leads nowhere.")),
        Attack("raw-disks", "Read your disks directly, past all folders", disks, disks_judge),
        Attack("mount", "Attach another folder or disk", mounts, refused("mount", "it may not attach anything")),
    ),
)
