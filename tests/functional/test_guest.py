"""Whatever code does to its own interpreter, in a real sandbox: one honest result, and the machine lives."""

from __future__ import annotations

import asyncio
import resource
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.wire.errors import SaveFailed
from everforge.wire.events import Displayed, Ended, Output
from kit.real import TESTED, real_machines, until_gone

pytestmark = pytest.mark.gvisor

HARD = {  # code -> (end, a word of its error)
    "os._exit": ("import os; os._exit(3)", "error", "exited"),
    "segfault": ("import ctypes; ctypes.string_at(0)", "error", "SIGSEGV"),
    "kill -9 of itself": ("import os; os.kill(os.getpid(), 9)", "error", "SIGKILL"),
    "abort": ("import os; os.abort()", "error", "SIGABRT"),
    "sys.exit": ("import sys; sys.exit(5)", "error", "SystemExit"),
    "recursion": ("def f(): return f()\nf()", "error", "RecursionError"),
    "memory": ("x = bytearray(100 << 30)", "error", "MemoryError"),
    "repr that raises": ("class R:\n    def __repr__(self): raise ValueError('no repr')\nR()", "error", "no repr"),
    "input": ("input('name? ')", "error", "input"),
    "syntax": ("def f(:", "error", "SyntaxError"),
    "closed stdout": ("import sys; sys.stdout.close(); 1", "value", ""),
    "closed descriptor 1": ("import os; os.close(1); 1", "value", ""),
    "closed control channel": ("import os; os.closerange(3, 1_000_000)", "error", "interpreter"),
    "replaced stdout": ("import sys, io; kept, sys.stdout = sys.stdout, io.StringIO(); print('hidden'); sys.stdout = kept; 1", "value", ""),
    "cutting off what the agent reads": ("import os; os.ftruncate(3, 0)", "error", "PermissionError"),
    "kill of the agent": ("import os; os.kill(1, 9)", "error", "PermissionError"),
    "a look into the agent": ("open('/proc/1/fd/1', 'wb')", "error", "PermissionError"),
    "a look into its memory": ("open('/proc/1/mem', 'rb')", "error", "PermissionError"),
    "endless repr": ("class R:\n    def __repr__(self):\n        while True: pass\nR()", "timed_out", "Timed out"),
    "swallowed interrupt": ("while True:\n    try:\n        while True: pass\n    except BaseException: pass", "timed_out", "Timed out"),
    "stopped itself": ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "timed_out", "Timed out"),
}


async def test_every_hard_thing_gives_one_honest_result_and_the_machine_lives(machines: Machines) -> None:
    name = (await machines.create(NewMachine())).record.name
    await machines.run(name, "open('kept.txt', 'w').write('kept')")
    for what, (code, end, word) in HARD.items():
        number, _ = await machines.exec(name, code, timeout_seconds=2 if end == "timed_out" else 15)
        ended = await machines.result(name, number)
        assert ended.end == end, (what, ended)
        assert word in (ended.error or ""), (what, ended)
        after = await machines.run(name, "print('alive'); open('kept.txt').read()")
        assert after.value == "'kept'", (what, after)
        tape = [e async for e in machines.read(name)]
        assert len([e for e in tape if isinstance(e, Ended) and e.instruction == number]) == 1
        assert any(isinstance(e, Output) and e.instruction == after.instruction and e.lines == ["alive"] for e in tape), what


ENDURES = """
import time
kept, caught = 1, 0
print('begun')
while True:
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        caught += 1
        print('caught', caught)
"""


async def test_code_may_catch_an_interrupt_and_go_on_and_who_interrupts_again_insists(machines: Machines) -> None:
    name = (await machines.create(NewMachine())).record.name
    number, _ = await machines.exec(name, ENDURES, timeout_seconds=300)
    async with asyncio.timeout(60):
        async for event in machines.read(name, follow=True):
            if isinstance(event, Output) and event.lines == ["begun"]:
                assert await machines.interrupt(name, instruction=number)
            if isinstance(event, Output) and event.lines == ["caught 1"]:
                break
    await asyncio.sleep(machines.forge.settings.interrupt_grace_seconds + 0.5)
    assert (await machines.get(name)).state == "busy"
    assert await machines.interrupt(name)
    ended = await machines.result(name, number)
    assert (ended.end, "kill" in (ended.error or "")) == ("interrupted", True), ended
    assert "NameError" in ((await machines.run(name, "kept")).error or "")


async def test_a_machine_of_the_usual_size_has_as_many_threads_as_it_may_have_processes(machines: Machines) -> None:
    code = """
import threading
gate = threading.Event()
threads = [threading.Thread(target=gate.wait) for _ in range(40)]
for thread in threads: thread.start()
gate.set()
for thread in threads: thread.join()
len(threads)
"""
    name = (await machines.create(NewMachine(memory_mb=1024))).record.name
    ended = await machines.run(name, code, timeout_seconds=60)
    assert ended.value == "40", ended


async def test_a_huge_repr_is_cut(machines: Machines) -> None:
    name = (await machines.create(NewMachine(memory_mb=1024))).record.name
    ended = await machines.run(name, "'x' * (100 << 20)", timeout_seconds=60)
    assert ended.end == "value", (ended.end, ended.error)
    assert len(ended.value or "") <= TESTED.result_bytes_max
    assert ended.note


FORK_BOMB = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
MEMFD_BOMB = "import os\nheld, block = [], bytes(1 << 20)\nwhile True:\n    held.append(os.memfd_create('bomb'))\n    for _ in range(16): os.write(held[-1], block)"


@pytest.mark.slow
@pytest.mark.parametrize(("bomb", "word"), [(FORK_BOMB, "Timed out"), (MEMFD_BOMB, "out of memory")], ids=["forks", "memfd"])
async def test_a_bomb_costs_the_interpreter_at_most(machines: Machines, bomb: str, word: str) -> None:
    name = (await machines.create(NewMachine(memory_mb=1024, cpus=1))).record.name
    await machines.run(name, "open('kept.txt', 'w').write('kept')")
    number, _ = await machines.exec(name, bomb, timeout_seconds=6)
    ended = await machines.result(name, number)
    assert ended.end in ("error", "timed_out"), ended
    assert word in (ended.error or ""), ended
    assert (await machines.get(name)).state == "ready"
    assert (await machines.run(name, "open('kept.txt').read()", timeout_seconds=60)).value == "'kept'"


async def test_a_machine_is_saved_in_the_middle_of_vfork(machines: Machines) -> None:
    name = (await machines.create(NewMachine())).record.name
    code = (
        "import os, time\nos.mkfifo('pipe')\npid = os.fork()\nif pid == 0:\n"
        "    os.posix_spawn('/bin/true', ['true'], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, 'pipe', os.O_RDONLY, 0)])\n"
        "while ') D ' not in open(f'/proc/{pid}/stat').read(): time.sleep(0.01)"
    )
    assert (await machines.run(name, code)).end == "value"
    await machines.hibernate(name)
    assert (await machines.get(name)).state == "asleep"
    assert (await machines.run(name, "os.path.exists('pipe')")).value == "True"


@pytest.mark.slow
async def test_rich_results_in_the_default_image(data: Path) -> None:
    async with real_machines(data, replace(TESTED, image="default")) as machines:
        name = (await machines.create(NewMachine())).record.name

        async def run(code: str) -> Ended:
            ended = await machines.run(name, code, timeout_seconds=60)
            assert ended.end == "value", ended
            return ended

        frame = await run("import pandas as pd; pd.DataFrame({'a': [1, 2]})")
        assert frame.data is not None
        assert "<table" in frame.data["text/html"]
        await run("import matplotlib.pyplot as plt; plt.plot([1, 2, 3]); plt.show()")
        figures = [e async for e in machines.read(name) if isinstance(e, Displayed) and "image/png" in e.data]
        assert len(figures) == 1
        plotly = await run("import plotly.graph_objects as go; go.Figure(go.Bar(y=[1, 2]))")
        shown = [e async for e in machines.read(name) if isinstance(e, Displayed) and "application/vnd.plotly.v1+json" in e.data]
        assert shown or "application/vnd.plotly.v1+json" in (plotly.data or {})
        for display, mime in (("Markdown('**b**')", "text/markdown"), ("Latex('$x$')", "text/latex"), ("JSON({'a': 1})", "application/json")):
            ended = await run(f"from IPython.display import Markdown, Latex, JSON; {display}")
            assert mime in (ended.data or {}), (display, ended)
        assert (await run("import asyncio; await asyncio.sleep(0, 'awaited')")).value == "'awaited'"
        await run("!echo from the shell; python3 --version")
        lines = [line async for e in machines.read(name) if isinstance(e, Output) for line in e.lines]
        assert "from the shell" in lines
        assert any(line.startswith("Python 3.13") for line in lines)
        for module in ("numpy", "scipy", "PIL", "openpyxl", "lxml", "bs4", "requests"):
            await run(f"import {module}")
    await until_gone(data)


async def test_a_live_interpreter_completes_also_after_a_sleep_and_an_instruction_has_variables_of_its_own(machines: Machines) -> None:
    name = (await machines.create(NewMachine())).record.name
    await machines.run(name, "class Dog:\n    bark_loud = 1\nrex = Dog()")
    await machines.hibernate(name)
    found = await machines.complete(name, "rex.bark_")
    assert ([m.rpartition(".")[2] for m in found.matches], found.busy) == (["bark_loud"], False)
    number, _ = await machines.exec(name, "import subprocess; subprocess.run('echo $WHO', shell=True, capture_output=True).stdout", env={"WHO": "me"})
    assert (await machines.result(name, number)).value == r"b'me\n'"


async def test_an_interpreter_that_starts_slowly_costs_an_instruction_its_time_and_the_machine_nothing(machines: Machines) -> None:
    name = (await machines.create(NewMachine())).record.name
    site = "import os, site\nfolder = site.getusersitepackages()\nos.makedirs(folder, exist_ok=True)"
    await machines.run(name, f"{site}\nopen(folder + '/usercustomize.py', 'w').write('import time; time.sleep(8)')\nopen('kept', 'w').write('yes')")
    await machines.run(name, "os._exit(3)")
    late = await machines.run(name, "open('ran', 'w')", timeout_seconds=1)
    assert (late.end, late.error) == ("timed_out", "Timed out after 1 s"), late
    assert (await machines.run(name, "import os; open('kept').read(), os.path.exists('ran')", timeout_seconds=60)).value == "('yes', False)"
    await machines.delete(name)


HOARDS_WITHOUT_ITS_FIRST_THREAD = """
import platform, subprocess, sys, time
code = '''
import ctypes, threading, time
def hoard():
    held = bytearray(b"x") * (300 << 20)
    time.sleep(600)
threading.Thread(target=hoard).start()
time.sleep(0.2)
ctypes.CDLL(None).syscall(%d, 0)
''' % {"x86_64": 60, "aarch64": 93}[platform.machine()]
hoards = [subprocess.Popen([sys.executable, "-c", code], start_new_session=True) for _ in range(2)]
time.sleep(10)
"""


async def test_a_process_whose_first_thread_has_ended_cannot_hide_the_memory_that_it_holds(machines: Machines) -> None:
    name = (await machines.create(NewMachine(memory_mb=512))).record.name
    number, _ = await machines.exec(name, HOARDS_WITHOUT_ITS_FIRST_THREAD, timeout_seconds=60)
    await machines.result(name, number)
    assert (await machines.run(name, "held = bytearray(b'x') * (100 << 20); 1", timeout_seconds=60)).value == "1"
    await machines.hibernate(name)
    assert (await machines.run(name, "2", timeout_seconds=60)).value == "2"
    await machines.delete(name)


HOLDS_MANY_FILES = """
import subprocess, sys
code = '''
import os, sys, time
held, seen = [], 0
for folder, _, files in os.walk("/usr"):
    for file in files:
        seen += 1
        if seen % 24 == int(sys.argv[1]):
            try: held.append(os.open(os.path.join(folder, file), os.O_RDONLY))
            except OSError: pass
print(len(held), flush=True)
time.sleep(600)
'''
holders = [subprocess.Popen([sys.executable, "-c", code, str(n)], stdout=subprocess.PIPE, start_new_session=True) for n in range(8)]
sum(int(holder.stdout.readline()) for holder in holders)
"""


def sentry_of(machines: Machines) -> int:
    """Of the one sandbox that has most descriptors."""
    engine: Any = machines.forge.engine
    found = subprocess.run(["pgrep", "-P", str(engine.warden_pid), "-f", "runsc-sandbox"], stdout=subprocess.PIPE, text=True, check=True).stdout
    ours = [int(pid) for pid in found.split()]
    return max(ours, key=lambda pid: len(list(Path(f"/proc/{pid}/fd").iterdir())))


async def test_a_machine_whose_programs_hold_more_files_than_this_computer_allows_says_so_and_sleeps_once_it_can(machines: Machines) -> None:
    """Each takes descriptors of the sandbox, which needs some more to be saved."""
    name = (await machines.create(NewMachine(memory_mb=1024, processes=64))).record.name
    number, _ = await machines.exec(name, HOLDS_MANY_FILES, timeout_seconds=120)
    held = await machines.result(name, number)
    assert int(held.value or 0) > 1_000, held
    sentry = sentry_of(machines)
    most = resource.prlimit(sentry, resource.RLIMIT_NOFILE)
    used = len(list(Path(f"/proc/{sentry}/fd").iterdir()))
    resource.prlimit(sentry, resource.RLIMIT_NOFILE, (used + 20, most[1]))
    with pytest.raises(SaveFailed, match="hold too many files open for this computer; close some of them"):
        await machines.hibernate(name)
    assert (await machines.run(name, "1")).value == "1"
    resource.prlimit(sentry, resource.RLIMIT_NOFILE, most)
    await machines.hibernate(name)
    assert (await machines.run(name, "[holder.poll() for holder in holders]", timeout_seconds=60)).value == str([None] * 8)
    await machines.delete(name)
