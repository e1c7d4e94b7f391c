"""The steps of the contract, done with a command line: any of the three, as its words are given."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from everforge.cli.failures import EXIT_INTERRUPTED, EXIT_REFUSED, EXIT_UNREACHABLE, UNREACHED
from everforge.client.results import Gathering
from kit.steps import Variables, check, plain

Json = Any
SECONDS_MAX = 120


class Refused(Exception):
    def __init__(self, body: Mapping[str, Json]) -> None:
        super().__init__(str(body))
        self.body = body


class CommandDriver:
    def __init__(self, command: Sequence[str], variables: Mapping[str, Json], home: str) -> None:
        self._command, self.variables, self._home = [*command], Variables(variables), home
        self._access = {"EVERFORGE_URL": variables["url"], "EVERFORGE_TOKEN": variables["token"]}
        self._clients: dict[str, dict[str, str]] = {}
        self._instructions: dict[str, tuple[str, int]] = {}

    def run(self, steps: list[dict[str, Json]]) -> None:
        for step in steps:
            if step.get("only", "cli") == "cli":
                self._step(step)

    def _step(self, step: dict[str, Json]) -> None:
        got, error = None, None
        access, self._using = self._clients.get(step.get("client", ""), self._access), step
        self._environment = {**_without_ours(), "HOME": self._home, **access}
        try:
            got = getattr(self, f"_{step['do']}")(self._name(step), self.variables.filled(step.get("with", {})))
        except Refused as e:
            error = e.body
        check(step, got, error, self.variables)

    def _name(self, step: dict[str, Json]) -> str:
        on = step.get("on", "")
        return self._instructions[on][0] if on in self._instructions else str(self.variables.values.get(on, ""))

    # --- one command ---------------------------------------------------------------------------------------------------------------------------

    def _ask(self, *words: str, stdin: str = "") -> Json:
        """What it answers as JSON; Refused when it is refused."""
        return json.loads(self._say(*words, "--json", stdin=stdin) or "null")

    def _say(self, *words: str, stdin: str = "", fine: tuple[int, ...] = (0,)) -> str:
        done = subprocess.run(
            [*self._command, *words], input=stdin.encode(), capture_output=True, timeout=SECONDS_MAX, env=self._environment, check=False
        )
        if done.returncode in fine:
            return done.stdout.decode()
        raise Refused(self._refusal(words, done.returncode, done.stderr.decode()))

    def _refusal(self, words: Sequence[str], status: int, said: str) -> dict[str, Json]:
        """Told as JSON, and with the exit code that goes with it."""
        try:
            body = json.loads(said.strip().splitlines()[-1])
        except (ValueError, IndexError):
            raise AssertionError(f"{words} ended with {status} and said {said!r}") from None
        expected = EXIT_UNREACHABLE if body["code"] in UNREACHED else EXIT_REFUSED
        assert status == expected, f"{words} ended with {status}, not {expected}: {body}"
        return body

    def _watch(self, words: Sequence[str], code: str, cut: int | None, interrupt: int | None) -> tuple[int, list[str]]:
        """The exit code, and the lines that came, while something is done to it after so many."""
        process = subprocess.Popen(
            [*self._command, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self._environment, text=True
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(code)
        process.stdin.close()
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if len(lines) == cut:
                self._cut("", {})
            if len(lines) == interrupt:
                process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        process.stderr.read()
        return process.wait(SECONDS_MAX), lines

    # --- steps ---------------------------------------------------------------------------------------------------------------------------------

    def _client(self, _: str, given: dict[str, Json]) -> None:
        self._clients[self._using["as"]] = {"EVERFORGE_URL": given["base_url"], "EVERFORGE_TOKEN": given["token"]}

    def _whoami(self, _: str, given: dict[str, Json]) -> Json:
        return self._ask("whoami")

    def _create(self, _: str, given: dict[str, Json]) -> Json:
        words = [word for key, value in given.pop("tags", {}).items() for word in ("--tag", f"{key}={value}")]
        words += [word for key, value in given.items() for word in (f"--{key.replace('_', '-')}", str(value))]
        made = self._ask("machine", "new", *words)
        return self._machine("", {"name": made["machine_name"]})

    def _machine(self, _: str, given: dict[str, Json]) -> Json:
        self.variables.values[self._using["as"]] = given["name"]
        return given

    def _machines(self, _: str, given: dict[str, Json]) -> Json:
        words = [word for key, value in given["tags"].items() for word in ("--tag", f"{key}={value}")]
        return [machine["name"] for machine in self._ask("machine", "list", *words)]

    def _info(self, name: str, given: dict[str, Json]) -> Json:
        return self._ask("machine", "show", name)

    def _update(self, name: str, given: dict[str, Json]) -> Json:
        return self._ask("machine", "tag", name, *(f"{key}={value}" for key, value in given["tags"].items()))

    def _run(self, name: str, given: dict[str, Json]) -> Json:
        cut, interrupt = given.pop("cut_after_lines", None), given.pop("interrupt_after_lines", None)
        code, words = given.pop("code"), ["machine", "exec", name, "-", *_options(given)]
        if cut is None and interrupt is None:
            return json.loads(self._say(*words, "--json", stdin=code, fine=(0, 1, EXIT_INTERRUPTED)))
        status, lines = self._watch(words, code, cut, interrupt)
        ends = {0: "value", 1: "error", EXIT_INTERRUPTED: "interrupted"}
        return {"end": ends[status], "stdout": "".join(f"{line}\n" for line in lines)}

    def _stream(self, name: str, given: dict[str, Json]) -> Json:
        status, lines = self._watch(["machine", "exec", name, "-"], given["code"], given.get("cut_after_lines"), None)
        assert status == 0
        return {"lines": lines}

    def _exec(self, name: str, given: dict[str, Json]) -> Json:
        code = given.pop("code")
        made = self._ask("machine", "exec", name, "-", "--detach", *_options(given), stdin=code)
        self._instructions[self._using["as"]] = (name, made["instruction"])
        return {"number": made["instruction"]}

    def _result(self, name: str, given: dict[str, Json]) -> Json:
        number = self._instructions[self._using["on"]][1]
        gathering = Gathering(number)
        for line in self._say("machine", "logs", name, "--instruction", str(number), "--follow", "--json").splitlines():
            list(gathering.take(json.loads(line)))
        return plain(gathering.result)

    def _cut(self, _: str, given: dict[str, Json]) -> None:
        urllib.request.urlopen(f"{self.variables.values['control']}/cut", timeout=10).close()

    def _file_write(self, name: str, given: dict[str, Json]) -> Json:
        return self._ask("machine", "files", "put", name, "-", given["path"], stdin=given["text"])

    def _file_read(self, name: str, given: dict[str, Json]) -> Json:
        return {"text": self._say("machine", "files", "get", name, given["path"], "-", "--json")}

    def _file_list(self, name: str, given: dict[str, Json]) -> Json:
        return [file["name"] for file in self._ask("machine", "files", "list", name, given["path"])]

    def _file_delete(self, name: str, given: dict[str, Json]) -> None:
        self._ask("machine", "files", "delete", name, given["path"], *(["--recursive"] if given.get("recursive") else []))

    def _snapshot(self, name: str, given: dict[str, Json]) -> Json:
        return self._ask("machine", "snapshot", name, "--name", given["name"])

    def _snapshots(self, name: str, given: dict[str, Json]) -> Json:
        return self._ask("machine", "snapshot", name, "--list")

    def _rollback(self, name: str, given: dict[str, Json]) -> Json:
        return self._ask("machine", "rollback", name, given["to"])

    def _fork(self, name: str, given: dict[str, Json]) -> Json:
        return self._machine("", {"name": self._ask("machine", "fork", name, given["name"])["machine_names"][0]})

    def _hibernate(self, name: str, given: dict[str, Json]) -> Json:
        return self._ask("machine", "hibernate", name)

    def _delete(self, name: str, given: dict[str, Json]) -> None:
        self._ask("machine", "delete", name, "--yes")


def _options(given: Mapping[str, Json]) -> list[str]:
    found = [word for key, value in given.get("env", {}).items() for word in ("--env", f"{key}={value}")]
    if "timeout_seconds" in given:
        found += ["--instruction-timeout-seconds", str(given["timeout_seconds"])]
    return found


def _without_ours() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("EVERFORGE_", "FOREVERVM_", "XDG_"))}
