"""The steps of the contract (sdk/contract/README.md), done with the Python SDK, of either kind."""

from __future__ import annotations

import inspect
import json
import sys
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, cast

import everforge
from everforge.client.results import Result
from everforge.wire.errors import EverforgeError

CONTRACT = Path(__file__).parents[2] / "sdk" / "contract"
sys.path.append(str(CONTRACT))
from matching import problems  # noqa: E402  # pyright: ignore[reportMissingImports]

Json = Any


class WrongStep(AssertionError):
    pass


class Variables:
    """What `${name}` stands for."""

    def __init__(self, given: Mapping[str, Json]) -> None:
        self.values = dict(given)

    def filled(self, value: Json) -> Json:
        if isinstance(value, str):
            for name, found in self.values.items():
                if value == f"${{{name}}}":
                    return found
                value = value.replace(f"${{{name}}}", str(found))
            return value
        if isinstance(value, list):
            return [self.filled(one) for one in cast(list[Json], value)]
        if isinstance(value, dict):
            return {name: self.filled(one) for name, one in cast(dict[str, Json], value).items()}
        return value

    def keep(self, step: Mapping[str, Json], got: Json) -> None:
        for name, path in step.get("keep", {}).items():
            found = got
            for part in path.split("."):
                found = found[int(part)] if isinstance(found, list) else found[part]
            self.values[name] = found


def check(step: Mapping[str, Json], got: Json, error: Mapping[str, Json] | None, variables: Variables) -> None:
    """Raises WrongStep."""
    what = json.dumps({name: value for name, value in step.items() if name not in ("gives", "why")})[:400]
    if "fails" in step:
        if error is None:
            raise WrongStep(f"{what} should have failed, and gave {got!r}")
        found = list(problems(variables.filled(step["fails"]), error))
    elif error is not None:
        raise WrongStep(f"{what} failed: {error}")
    else:
        found = list(problems(variables.filled(step["gives"]), got)) if "gives" in step else []
    if found:
        raise WrongStep(f"{what}: {'; '.join(found)}")
    if error is None:
        variables.keep(step, got)


def plain(value: Json) -> Json:
    if isinstance(value, Result):
        found = {f: getattr(value, f) for f in Result.__dataclass_fields__}
        return {**found, "displays": [dict(display.data) for display in value.displays]}
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, list):
        return [plain(one) for one in cast(list[Json], value)]
    return value


async def finished(value: Json) -> Json:
    """Of a coroutine what it returns, of an iterator the list of what it gives; whichever kind of SDK made it."""
    if inspect.isawaitable(value):
        return await value
    if hasattr(value, "__aiter__"):
        return [one async for one in value]
    return list(value) if hasattr(value, "__next__") else value


class Driver:
    def __init__(self, variables: Mapping[str, Json], *, asynchronous: bool) -> None:
        self.variables = Variables(variables)
        self._asynchronous = asynchronous
        self._things: dict[str, Json] = {}
        self._clients = [self._client(token=variables["token"], base_url=variables["url"])]

    def _client(self, **given: Json) -> Json:
        return (everforge.AsyncEverforge if self._asynchronous else everforge.Everforge)(**given)

    async def run(self, steps: list[dict[str, Json]]) -> None:
        try:
            for step in steps:
                if step.get("only", "sdk") == "sdk":
                    await self._step(step)
        finally:
            for client in self._clients:
                await finished(client.close())

    async def _step(self, step: dict[str, Json]) -> None:
        got, error = None, None
        try:
            got = await self._do(step, self.variables.filled(step.get("with", {})))
        except EverforgeError as e:
            error = {"code": e.code, "message": e.message}
        check(step, got, error, self.variables)

    async def _do(self, step: dict[str, Json], given: dict[str, Json]) -> Json:
        on, what = self._things.get(step.get("on", "")), step["do"]
        client = self._things[step["client"]] if "client" in step else self._clients[0]
        act = getattr(self, f"_{what}", None)
        if what == "client":
            made = await self._new_client(given)
        elif act is not None:
            made = await act(client if on is None else on, given)
        else:
            made = plain(await finished(getattr(client if on is None else on, what)(**given)))
        if isinstance(made, tuple):
            thing, made = cast("tuple[Json, Json]", made)
            if "as" in step:
                self._things[step["as"]] = thing
                if hasattr(thing, "name"):
                    self.variables.values[step["as"]] = thing.name
        return made

    # --- what is not a method of the same name ---------------------------------------------------------------------------------------------

    async def _new_client(self, given: dict[str, Json]) -> Json:
        self._clients.append(self._client(**given))
        return self._clients[-1], None

    async def _whoami(self, client: Json, given: dict[str, Json]) -> Json:
        return {"account": await finished(client.whoami())}

    async def _create(self, client: Json, given: dict[str, Json]) -> Json:
        if "from_snapshot" in given:
            given["from_snapshot"] = (given["from_snapshot"]["machine"], given["from_snapshot"]["snapshot"])
        made = await finished(client.create(**given))
        return made, {"name": made.name}

    async def _machine(self, client: Json, given: dict[str, Json]) -> Json:
        made = client.machine(**given)
        return made, {"name": made.name}

    async def _machines(self, client: Json, given: dict[str, Json]) -> Json:
        return [machine.name for machine in await finished(client.machines(**given))]

    async def _reset(self, machine: Json, given: dict[str, Json]) -> Json:
        return {"undo": await finished(machine.reset(**given))}

    async def _run(self, on: Json, given: dict[str, Json]) -> Json:
        cut, interrupt = given.pop("cut_after_lines", None), given.pop("interrupt_after_lines", None)
        if cut is None and interrupt is None:
            return plain(await finished(on.run(**self._with_functions(given))))
        instruction = await finished(on.exec(**self._with_functions(given)))
        return await self._watched(instruction, {}, cut, interrupt)

    async def _result(self, instruction: Json, given: dict[str, Json]) -> Json:
        return await self._watched(instruction, self._with_functions(given), given.pop("cut_after_lines", None), None)

    async def _watched(self, instruction: Json, given: dict[str, Json], cut: int | None, interrupt: int | None) -> Json:
        count = 0

        def line(_: object) -> Json:
            nonlocal count
            count += 1
            if count == cut:
                self._cut_now()
            return instruction.interrupt() if count == interrupt else None

        return plain(await finished(instruction.result(on_stdout=line, **given)))

    def _with_functions(self, given: dict[str, Json]) -> dict[str, Json]:
        if "functions" in given:
            given["functions"] = {name: _function(answer) for name, answer in given["functions"].items()}
        return given

    async def _exec(self, machine: Json, given: dict[str, Json]) -> Json:
        made = await finished(machine.exec(**given))
        return made, {"number": made.number}

    async def _instruction(self, machine: Json, given: dict[str, Json]) -> Json:
        made = machine.instruction(**given)
        return made, {"number": made.number}

    async def _stream(self, machine: Json, given: dict[str, Json]) -> Json:
        cut, lines = given.pop("cut_after_lines", None), []

        def take(line: Json) -> None:
            lines.append(str(line))
            if len(lines) == cut:
                self._cut_now()

        stream = machine.stream(**given)
        if self._asynchronous:
            async for line in stream:
                take(line)
        else:
            for line in stream:
                take(line)
        return {"lines": lines}

    async def _interrupt(self, on: Json, given: dict[str, Json]) -> Json:
        return {"interrupted": await finished(on.interrupt(**given))}

    async def _repl(self, machine: Json, given: dict[str, Json]) -> Json:
        made = machine.repl(**given)
        await (made.__aenter__() if self._asynchronous else finished(made.__enter__()))
        return made, None

    async def _position(self, repl: Json, given: dict[str, Json]) -> Json:
        return {"position": repl.position}

    async def _fork(self, machine: Json, given: dict[str, Json]) -> Json:
        made = await finished(machine.fork(**given))
        return made, {"name": made.name}

    async def _forks(self, machine: Json, given: dict[str, Json]) -> Json:
        return [made.name for made in await finished(machine.forks(**given))]

    async def _file_write(self, machine: Json, given: dict[str, Json]) -> Json:
        return plain(await finished(machine.files.write(given["path"], given["text"])))

    async def _file_read(self, machine: Json, given: dict[str, Json]) -> Json:
        return {"text": await finished(machine.files.read_text(**given))}

    async def _file_list(self, machine: Json, given: dict[str, Json]) -> Json:
        return [file.name for file in await finished(machine.files.list(**given))]

    async def _file_exists(self, machine: Json, given: dict[str, Json]) -> Json:
        return {"exists": await finished(machine.files.exists(**given))}

    async def _file_delete(self, machine: Json, given: dict[str, Json]) -> Json:
        return await finished(machine.files.delete(**given))

    async def _cut(self, on: Json, given: dict[str, Json]) -> Json:
        self._cut_now()

    def _cut_now(self) -> None:
        urllib.request.urlopen(f"{self.variables.values['control']}/cut", timeout=10).close()

    async def _call(self, on: Json, given: dict[str, Json]) -> Json:
        group = {"machine.egress": lambda: on.egress, "": lambda: on}.get(given["group"], lambda: getattr(on, given["group"]))()
        arguments = given["arguments"]
        rules = arguments.pop("rules", [])
        found = plain(await finished(getattr(group, given["method"])(*rules, **arguments)))
        return {"count": found.count, "head": plain(found.head)} if hasattr(found, "head") and hasattr(found, "count") else found


def _function(answer: Json) -> Callable[..., Json]:
    def function(*args: Json, **kwargs: Json) -> Json:
        if isinstance(answer, dict) and "$raises" in answer:
            raise RuntimeError(answer["$raises"])
        return answer

    return function
