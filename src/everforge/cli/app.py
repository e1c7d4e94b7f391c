"""Which commands there are."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from . import doctor, login, logs, repl, serve, setup, signup, usage, whoami
from .account import delete as account_delete
from .account import invite as account_invite
from .account import list as account_list
from .account import new as account_new
from .image import build, delete, lock, show
from .machine import delete as machine_delete
from .machine import exec as machine_exec
from .machine import fork, hibernate, interrupt, reset, rollback, snapshot, tag, wake
from .machine import list as machine_list
from .machine import new as machine_new
from .machine import show as machine_show
from .machine.files import delete as files_delete
from .machine.files import get, put
from .machine.files import list as files_list
from .token import link as token_link
from .token import list as token_list
from .token import new as token_new
from .token import revoke

_STYLE: dict[str, Any] = {
    "no_args_is_help": True, "rich_markup_mode": None, "context_settings": {"help_option_names": ["-h", "--help"], "terminal_width": 80},
}  # fmt: skip

app = typer.Typer(name="everforge", help="Python machines that never forget, on hardware you own.", pretty_exceptions_enable=False, **_STYLE)


def _group(name: str, help: str, above: typer.Typer = app) -> typer.Typer:
    group = typer.Typer(help=help, **_STYLE)
    above.add_typer(group, name=name)
    return group


app.command("serve")(serve.serve)
app.command("signup")(signup.signup)
app.command("login")(login.login)
app.command("logout")(login.logout)
app.command("whoami")(whoami.whoami)
app.command("repl")(repl.repl)

machine = _group("machine", "Machines, and what can be done with them.")
machine.command("new")(machine_new.new)
machine.command("list")(machine_list.list_)
machine.command("show")(machine_show.show)
machine.command("exec")(machine_exec.exec_)
machine.command("repl", help=repl.HELP_BELOW_MACHINE)(repl.repl)
machine.command("logs")(logs.logs)
machine.command("interrupt")(interrupt.interrupt)
machine.command("fork")(fork.fork)
machine.command("snapshot")(snapshot.snapshot)
machine.command("rollback")(rollback.rollback)
machine.command("reset")(reset.reset)
machine.command("hibernate")(hibernate.hibernate)
machine.command("wake")(wake.wake)
machine.command("tag")(tag.tag)
machine.command("delete")(machine_delete.delete)
files = _group("files", "Files of a machine, asleep or not.", machine)
files.command("list")(files_list.list_)
files.command("get")(get.get)
files.command("put")(put.put)
files.command("delete")(files_delete.delete)

token = _group("token", "The tokens of the account.")
token.command("new")(token_new.new)
token.command("list")(token_list.list_)
token.command("link")(token_link.link)
token.command("revoke")(revoke.revoke)

account = _group("account", "The accounts of the server, for its owner.")
account.command("list")(account_list.list_)
account.command("new")(account_new.new)
account.command("delete")(account_delete.delete)
account.command("invite")(account_invite.invite)

app.command("usage")(usage.usage)
app.command("settings")(serve.settings)
app.command("setup")(setup.setup)
app.command("doctor")(doctor.doctor)

image = _group("image", "The root file systems that machines start from.")
image.command("build")(build.build)
image.command("list")(show.list_images)
image.command("lock")(lock.lock)
image.command("delete")(delete.delete)


@app.callback(invoke_without_command=True)
def everforge(version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False) -> None:
    if version:
        from everforge import __version__

        print(f"everforge {__version__}")
        raise typer.Exit
