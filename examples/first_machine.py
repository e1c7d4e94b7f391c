"""A first machine: it remembers, sleeps, wakes, and can be forked and rolled back.

With a server running (`make run`): .venv/bin/python examples/first_machine.py
"""

from everforge import Everforge

with Everforge() as client:
    machine = client.create()
    print("a new machine:", machine.name)

    machine.run("numbers = [1, 2, 3]")
    print("state stays between instructions: sum(numbers) =", machine.run("sum(numbers)").value)

    machine.hibernate()  # nothing of it runs any more
    print("it sleeps:", machine.info().state, "with", machine.info().memory_bytes, "bytes of memory")
    print("the next instruction wakes it, and it remembers:", machine.run("numbers.append(4); numbers").value)

    other = machine.fork()  # goes its own way from the same instant
    other.run("numbers = 'something else'")
    print("the fork has", other.run("numbers").value, "and the first machine", machine.run("numbers").value)

    machine.snapshot("before the mistake")
    machine.run("numbers.clear()")
    machine.rollback("before the mistake")  # memory and files
    print("a mistake is rolled back:", machine.run("numbers").value)

    for line in machine.stream("for word in ('output', 'line', 'by', 'line'): print(word)"):
        print("as it comes:", line)

    for done in (other, machine):
        done.delete()
