"""Can it become the administrator?"""

from __future__ import annotations

import os
from typing import Any

from ..attack import REFUSED, Attack, Group, Outcome, Seen, all_refused, broken, held
from ..bait import Bait
from ..inside import attempt, call, opened, status


def becoming(bait: dict[str, Any]) -> dict[str, Any]:
    ways = {
        "setuid": lambda: os.setuid(0),
        "setgid": lambda: os.setgid(0),
        "setresuid": lambda: os.setresuid(0, 0, 0),
        "setgroups": lambda: os.setgroups([0]),
    }
    return {name: attempt(way) for name, way in ways.items()}


def rights(bait: dict[str, Any]) -> dict[str, Any]:
    found = status()
    return {
        "uid": os.getuid(),
        "rights": [found.get(name, "?") for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")],
        "locked": found.get("NoNewPrivs"),
    }


def privileged_programs(bait: dict[str, Any]) -> dict[str, Any]:
    import stat

    found = list[str]()
    for folder in ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec", "/usr/local/bin", "/opt"):
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            path = f"{folder}/{name}"
            if os.path.isfile(path) and os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID) and os.stat(path).st_uid == 0:
                found.append(path)
    return {"count": len(found), "locked": status().get("NoNewPrivs")}


def changing_the_image(bait: dict[str, Any]) -> dict[str, Any]:
    append = os.O_WRONLY | os.O_APPEND
    paths = {"a program": os.path.realpath("/bin/sh"), "the list of users": "/etc/passwd", "the list of passwords": "/etc/shadow"}
    return {name: opened(path, append) for name, path in paths.items() if os.path.exists(path)}


def a_world_of_its_own(bait: dict[str, Any]) -> dict[str, Any]:
    """In a user namespace a program may call itself administrator. What does that open?"""
    import json

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            made = call("unshare", 0x10000000)  # CLONE_NEWUSER; gVisor grants it, and its administrator is one of that world only
            found = (
                {"have such a world": made}
                if made != "done"
                else {
                    "end the guard": attempt(lambda: os.kill(1, 0)),
                    "read the guard's memory": opened("/proc/1/mem", os.O_RDONLY),
                    "restart the system": call("reboot", 0, 0, 0, 0),
                    "load a part into the kernel": call("finit_module", -1, b"", 0),
                    "change a program of the system": opened("/usr/bin/env", os.O_WRONLY | os.O_APPEND),
                }
            )
            os.write(writing, json.dumps(found).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    said = os.read(reading, 4096)
    os.close(reading)
    return json.loads(said or b"{}")


def rights_judge(seen: Seen, bait: Bait) -> Outcome:
    some = [found for found in seen.texts("rights") if found.strip("0")]
    if seen.number("uid") == 0 or some or len(seen.texts("rights")) != 4 or seen.text("locked") != "1":
        return broken(f"It is user {seen.number('uid')} with the rights {', '.join(some) or 'none'}; locked: {seen.text('locked')}.")
    return held(f"It is user number {seen.number('uid')}, has none of them, and is locked against getting any.")


def programs_judge(seen: Seen, bait: Bait) -> Outcome:
    if seen.number("count") < 0 or (seen.number("count") > 0 and seen.text("locked") != "1"):
        return broken(f"There are {seen.number('count')} such programs, and they work.")
    return held("There are none." if seen.number("count") == 0 else f"There are {seen.number('count')}, and the lock takes their power away.")


def world_judge(seen: Seen, bait: Bait) -> Outcome:
    through = [name for name, why in seen.fact.items() if why not in REFUSED]
    if not through and len(seen.fact) == 1:
        return held("It may not even have one.")
    return broken(f"There it may {', '.join(through)}.") if through else held(f"None of {len(seen.fact)} doors opens for that.")


GROUP = Group(
    "Can it become the administrator?",
    "No. It is an ordinary user without any special right, and no program can give it one.",
    (
        Attack("become-root", "Declare itself the administrator", becoming, all_refused("the system does not believe it")),
        Attack("rights", "Look for special rights (capabilities) that it was left with", rights, rights_judge),
        Attack("setuid", "Use programs that run as the administrator whoever starts them", privileged_programs, programs_judge),
        Attack(
            "change-image", "Change the programs and users that the machine was made with", changing_the_image, all_refused("they are not its own")
        ),
        Attack("user-namespace", "Play administrator in a world of its own, and go on from there", a_world_of_its_own, world_judge),
    ),
)
