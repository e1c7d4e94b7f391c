"""Can it break the system?"""

from __future__ import annotations

import os
import platform
from typing import Any

from ..attack import Attack, Group, Outcome, Seen, all_refused, broken, held
from ..bait import Bait
from ..inside import call, call_apart, heard, opened, read


def which_kernel(bait: dict[str, Any]) -> dict[str, Any]:
    return {"release": platform.release(), "version": read("/proc/version")[:200]}


def modules(bait: dict[str, Any]) -> dict[str, Any]:
    return {"from memory": call("init_module", None, 0, b""), "from a file": call("finit_module", -1, b"", 0)}


def machinery(bait: dict[str, Any]) -> dict[str, Any]:
    return {
        "eBPF": call_apart("bpf", 0, None, 0),
        "perf": call_apart("perf_event_open", None, 0, -1, -1, 0),
        "userfaultfd": call_apart("userfaultfd", 0),
        "io_uring": call_apart("io_uring_setup", 1, None),
        "the kernel's keys": call_apart("add_key", b"user", b"everforge", b"x", 1, -1),
    }


def switches(bait: dict[str, Any]) -> dict[str, Any]:
    """Opened and closed, nothing written: some of them would turn a real computer off."""
    writable = [
        "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/panic_on_oom", "/proc/sys/kernel/panic",
        "/proc/sys/fs/binfmt_misc/register", "/sys/kernel/uevent_helper", "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/memory/release_agent",
        "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/1/oom_score_adj", "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/kvm",
    ]  # fmt: skip
    readable = ["/proc/kcore", "/proc/kallsyms", "/proc/kmsg", "/proc/iomem", "/sys/kernel/debug/tracing/trace", "/dev/mem"]
    found = {path: opened(path, os.O_WRONLY) for path in writable}
    return found | {f"{path} (reading)": "ENOENT" if not read(path).strip() else "done" for path in readable if path != "/proc/kmsg"}


def power(bait: dict[str, Any]) -> dict[str, Any]:
    """Each with arguments that make no sense: whoever may do it at all is told so, and nothing happens."""
    found = {
        "restart": call("reboot", 0, 0, 0, 0),
        "start another kernel": call("kexec_load", 0, 0, None, 0xFFFF),
        "set the clock": call("clock_settime", 0, None),
        "change the root folder": call_apart("chroot", b"/tmp"),
    }
    return found | ({"talk to devices": call("iopl", 9)} if platform.machine() == "x86_64" else {})  # others have no such call


def engine_sockets(bait: dict[str, Any]) -> dict[str, Any]:
    return {place.replace("\0", "@"): heard(place)["why"] for place in bait["sockets"]}


def kernel_judge(seen: Seen, bait: Bait) -> Outcome:
    if seen.text("release") == bait.kernel or not seen.text("release"):
        return broken("It talks to the kernel of your computer itself.")
    return held(f"It talks to {seen.text('release')}, a kernel made for this that runs as an ordinary program; yours is {bait.kernel}.")


def switches_judge(seen: Seen, bait: Bait) -> Outcome:
    through = [path for path, why in seen.fact.items() if why == "done"]
    return broken(f"It could open {', '.join(through)}.") if through or not seen.fact else held(f"None of {len(seen.fact)} can be opened.")


def sockets_judge(seen: Seen, bait: Bait) -> Outcome:
    through = [path for path, why in seen.fact.items() if why == "done"]
    if through:
        return broken(f"It reached {', '.join(through)}.")
    own = ", the server's own among them," if bait.warden in seen.fact else ""
    return held(f"Of the {len(seen.fact)} that are there on your computer{own} none is there for it.")


GROUP = Group(
    "Can it break the system?",
    "No. It never talks to your kernel, the core of your system, but to one of its own.",
    (
        Attack("own-kernel", "Find out which kernel it talks to", which_kernel, kernel_judge),
        Attack("modules", "Load a part of its own into the kernel", modules, all_refused("no parts are taken")),
        Attack("machinery", "Use the parts of the kernel that most break-outs went through", machinery, all_refused("they are not there for it")),
        Attack("switches", "Open the switches and the memory of the system", switches, switches_judge),
        Attack("power", "Restart the computer, set its clock, talk to its devices", power, all_refused("it may not")),
        Attack("engine-sockets", "Give orders to container engines and other services (docker.sock and the like)", engine_sockets, sockets_judge),
    ),
)
