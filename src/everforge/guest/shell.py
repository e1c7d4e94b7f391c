"""IPython's InteractiveShell without a terminal: its magics, formatters and namespace, our streams, subprocesses and displays."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportMissingTypeStubs=false
# IPython is not typed.

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import types
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from IPython.core.displaypub import DisplayPublisher
from IPython.core.formatters import IPythonDisplayFormatter
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.profiledir import ProfileDir
from traitlets.config import Config

Publish = Callable[[dict[str, Any], dict[str, Any]], None]


class Publisher(DisplayPublisher):
    """display(), figures, update_display(): each becomes a message, in order with the output."""

    send: Publish

    def publish(self, data: Any, metadata: Any = None, source: Any = None, *, transient: Any = None, update: bool = False, **_kwargs: Any) -> None:
        told = dict(metadata or {})
        if transient and "display_id" in transient:
            told["display_id"] = transient["display_id"]
        if update:
            told["update"] = True
        self.send(dict(data), told)

    def clear_output(self, wait: bool = False) -> None:
        """What was told is on the tape; nothing can be cleared."""


class SelfDisplay(IPythonDisplayFormatter):
    """An object that can say what it is as data is not asked to show itself: its data belongs to the result, or to the display that was asked for."""

    def __call__(self, obj: Any) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        return False if hasattr(type(obj), "_repr_mimebundle_") else bool(super().__call__(obj))


class Exit:
    """`exit` and `quit`, called or alone on a line."""

    def __call__(self, code: object = None) -> None:
        raise SystemExit(code)

    def __repr__(self) -> str:
        raise SystemExit(None)


class MachineShell(InteractiveShell):
    def init_ipython_dir(self, ipython_dir: Any) -> None:
        # Set behind the trait's back, which would make the folder.
        self._trait_values["ipython_dir"] = str(Path("~/.ipython").expanduser())

    def init_display_formatter(self) -> None:
        super().init_display_formatter()
        self.display_formatter.ipython_display_formatter = SelfDisplay(parent=self.display_formatter)  # pyright: ignore

    def init_profile_dir(self, profile_dir: Any) -> None:
        # A profile that is not on disk: nothing of ours appears in the user's home, and nothing there can keep the shell from starting.
        self.profile_dir = profile_dir or ProfileDir()

    def init_sys_modules(self) -> None:
        sys.modules["__main__"] = self.user_module

    def init_display_pub(self) -> None:
        self.display_pub = Publisher(parent=self)

    def init_virtualenv(self) -> None:
        pass

    def enable_gui(self, gui: Any = None) -> None:
        """There is no screen."""

    def system(self, cmd: str) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """`!cmd`: the command writes to descriptors 1 and 2 itself, so its output comes as it is written and in order with ours."""
        shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"  # noqa: PTH110
        command = self.var_expand(cmd, depth=1)
        done = subprocess.run(command, shell=True, executable=shell, stdin=subprocess.DEVNULL, check=False)
        self.user_ns["_exit_code"] = done.returncode

    system_piped = system_raw = system

    def ask_exit(self) -> None:
        raise SystemExit(None)


class Runner:
    """One event loop for the life of the interpreter: tasks left behind by one instruction go on in the next that awaits."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def __call__(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        loop = self.loop()
        task = loop.create_task(coroutine)
        try:
            return loop.run_until_complete(task)
        except KeyboardInterrupt:
            if not task.done():
                task.cancel()
                with _suppressed():
                    loop.run_until_complete(task)
            raise

    def loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        return self._loop


class _suppressed:
    """The interrupted coroutine's own way out does not matter: the instruction ends as interrupted."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> bool:
        return kind is not None and issubclass(kind, (Exception, asyncio.CancelledError))


def make_shell(publish: Publish) -> MachineShell:
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.cache_size = 0
    config.IPCompleter.use_jedi = False  # it reads whole libraries; what the live objects say is quicker, and true
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.ast_node_interactivity = "last_expr"
    main = types.ModuleType("__main__")
    Publisher.send = staticmethod(publish)  # pyright: ignore[reportAttributeAccessIssue]
    shell = MachineShell.instance(config=config, user_module=main)
    shell.builtin_trap.activate()
    shell.loop_runner = Runner()  # pyright: ignore[reportAttributeAccessIssue]
    shell.user_ns["exit"] = shell.user_ns["quit"] = Exit()
    shell.user_ns.pop("open", None)  # IPython's refuses descriptors 0 to 2; ours may be opened
    shell.user_ns_hidden.update({name: shell.user_ns[name] for name in ("exit", "quit")})
    return shell
