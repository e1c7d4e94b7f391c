"""A first machine: it remembers, sleeps, wakes, and can be forked and rolled back. Run it with `make run`, or by itself after `make setup`."""

import asyncio
import tempfile
from pathlib import Path

from everforge.machines.requests import NewMachine
from everforge.machines.settings import MachineSettings
from everforge.server.bootstrap import running_machines
from everforge.wire.events import Output


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="everforge-first-") as data:
        async with running_machines(Path(data), MachineSettings(image="minimal")) as machines:
            await machines.create(NewMachine(name="first"))

            print("state stays between instructions:")
            await machines.run("first", "import time; numbers = [1, 2, 3]")
            print("   sum(numbers) =", (await machines.run("first", "sum(numbers)")).value)

            print("it sleeps, and nothing of it is in memory; the next instruction wakes it:")
            await machines.hibernate("first")  # nothing of it runs any more
            print("   state:", (await machines.get("first")).state, "- memory:", await machines.memory_bytes("first"), "bytes")
            print("   numbers =", (await machines.run("first", "numbers.append(4); numbers")).value)  # woken, and it remembers

            print("a fork goes its own way from the same instant:")
            await machines.fork("first", names=["second"])
            await machines.run("second", "numbers = 'something else'")
            print("   second:", (await machines.run("second", "numbers")).value, "- first:", (await machines.run("first", "numbers")).value)

            print("a mistake is rolled back, memory and files:")
            await machines.snapshot("first", "before the mistake")
            await machines.run("first", "numbers.clear()")
            await machines.rollback("first", snapshot="before the mistake")
            print("   numbers =", (await machines.run("first", "numbers")).value)

            print("and all of it is on the tape:")
            await machines.run("first", "for word in ('output', 'line', 'by', 'line'): print(word)")
            lines = [line async for event in machines.read("first") if isinstance(event, Output) for line in event.lines]
            print("  ", " ".join(lines))


asyncio.run(main())
