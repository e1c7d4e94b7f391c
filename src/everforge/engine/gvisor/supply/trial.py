"""The trial itself, run as a program: `trial.py RUNSC FOLDER`, prints one line of JSON. Standard library only, no import of ours.

The guest is the host's own shell with its libraries: it counts the lines it reads. Restored, it must count on.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

SHELL = "/bin/sh"
PROGRAM = 'n=0; while read word; do n=$((n+1)); echo "$word $n"; done'
STEP_SECONDS = 30.0
PR_SET_CHILD_SUBREAPER = 36
_OLD = re.compile(r"flag provided but not defined|invalid value|unknown command|unknown platform|usage of", re.IGNORECASE)


class Failed(Exception):
    def __init__(self, stage: str, detail: str) -> None:
        super().__init__(detail)
        self.stage, self.detail = stage, detail


class Trial:
    def __init__(self, runsc: str, work: Path) -> None:
        self.runsc, self.work = runsc, work
        self.descriptors: list[int] = []

    def run(self) -> None:
        self._make_bundle()
        (self.work / "image").mkdir()
        first = self._pipes()
        self._call("start", "run", "--detach", "--bundle", str(self.work / "bundle"), "first", pipes=first)
        self._expect("start", first, b"one", b"one 1")
        self._call("save", "checkpoint", "--image-path", str(self.work / "image"), "--compression=none", "--leave-running", "--direct", "first")
        self._expect("save", first, b"two", b"two 2")  # a save must leave it running
        self._call("save", "delete", "--force", "first")
        second = self._pipes()
        bundle = ["--bundle", str(self.work / "bundle"), "--image-path", str(self.work / "image")]
        self._call("restore", "restore", "--detach", *bundle, "second", pipes=second)
        self._expect("restore", second, b"three", b"three 2")  # "two" came after the save
        self._call("restore", "delete", "--force", "second")

    def _make_bundle(self) -> None:
        root = self.work / "bundle/root"
        for name in ("proc", "tmp"):
            (root / name).mkdir(parents=True)
        for file in [SHELL, *_libraries(SHELL)]:
            place = root / file.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
            place.chmod(0o755)
        spec = {
            "ociVersion": "1.0.0", "hostname": "probe", "root": {"path": "root", "readonly": False},
            "process": {"user": {"uid": 0, "gid": 0}, "args": [SHELL, "-c", PROGRAM], "env": [], "cwd": "/", "noNewPrivileges": True},
            "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]},
        }  # fmt: skip
        (self.work / "bundle/config.json").write_text(json.dumps(spec))

    def _pipes(self) -> tuple[int, int, int, int]:
        guest_in, to_guest = os.pipe()
        from_guest, guest_out = os.pipe()
        self.descriptors += [to_guest, from_guest]
        return guest_in, guest_out, to_guest, from_guest

    def _call(self, stage: str, *words: str, pipes: tuple[int, int, int, int] | None = None) -> None:
        (self.work / "disk").mkdir(exist_ok=True)
        options = [f"--root={self.work}/state", "--network=none", "--platform=systrap", "--ignore-cgroups"]
        argv = [self.runsc, *options, f"--overlay2=root:dir={self.work}/disk,size=64m", *words]
        # A file and not a pipe: the sandbox that stays behind would hold a pipe open.
        with (self.work / "stderr").open("w+b") as told:
            try:
                streams = (pipes[0], pipes[1]) if pipes else (subprocess.DEVNULL, told)
                done = subprocess.run(argv, stdin=streams[0], stdout=streams[1], stderr=told, timeout=STEP_SECONDS, start_new_session=True)
            except OSError as error:
                raise Failed("exec", f"{error.strerror}; this computer is {platform.machine()}") from error
            except subprocess.TimeoutExpired:
                raise Failed(stage, f"`runsc {words[0]}` took longer than {STEP_SECONDS:.0f} seconds") from None
            finally:
                for descriptor in pipes[:2] if pipes else ():
                    os.close(descriptor)
            told.seek(0)
            complaint = told.read().decode(errors="replace").strip()
        if done.returncode:
            old = _OLD.search(complaint)
            raise Failed("flags" if old else stage, _reason(complaint) or f"`runsc {words[0]}` ended with exit code {done.returncode}")

    def _expect(self, stage: str, pipes: tuple[int, int, int, int], word: bytes, answer: bytes) -> None:
        _, _, to_guest, from_guest = pipes
        got, deadline = b"", time.monotonic() + STEP_SECONDS
        try:
            os.write(to_guest, word + b"\n")
        except OSError as error:
            raise Failed(stage, "the sandbox ended at once") from error
        while not got.endswith(b"\n"):
            if not select.select([from_guest], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise Failed(stage, "the sandbox did not answer")
            data = os.read(from_guest, 100)
            if not data:
                raise Failed(stage, "the sandbox ended at once")
            got += data
        if got.strip() != answer:
            raise Failed(stage, f"the sandbox answered {got.strip()!r} and not {answer!r}")


def _libraries(program: str) -> list[str]:
    """What the loader takes for it, by ldd; nothing for a static program."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True)
    return sorted(set(re.findall(r"(/\S+) \(0x", done.stdout)))


def _reason(complaint: str) -> str:
    """The last message of runsc, without its time stamps; of a wrong flag, the line that names it."""
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    if not lines:
        return ""
    chosen = next((line for line in lines if _OLD.search(line)), lines[-1])
    return re.sub(r"^.*?(?:FATAL ERROR|error): |^[IWEF]\d{4} .*?\] ", "", chosen)[:300]


def _end_children() -> None:
    """Sentry and gofer are ours now (we are the subreaper): end and reap all of them, whatever state they were left in."""
    for _ in range(1000):
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        for pid in children.read_text().split() if children.exists() else ():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def main() -> None:
    def stop(*_: object) -> None:
        raise SystemExit(1)

    signal.signal(signal.SIGTERM, stop)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    began = time.monotonic()
    told: dict[str, object] = {"stage": "done", "detail": ""}
    try:
        Trial(sys.argv[1], Path(sys.argv[2])).run()
    except Failed as failure:
        told = {"stage": failure.stage, "detail": failure.detail}
    except OSError as error:
        told = {"stage": "start", "detail": str(error)}
    finally:
        _end_children()
        # runsc keeps a network namespace mounted in its folder, which could then not be removed.
        subprocess.run(["umount", "--lazy", f"{sys.argv[2]}/state/null-netns"], capture_output=True)
    print(json.dumps({**told, "seconds": round(time.monotonic() - began, 3)}))


if __name__ == "__main__":
    main()
