"""Which commands there are."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from . import doctor, login, logs, repl, serve, setup, signup, usage, whoami
from .account import delete as account_delete
from .account import invite as account_invite
from .account import list as account_list
from .account import new as account_new
from .account import quota as account_quota
from .audit import export as audit_export
from .audit import show as audit_show
from .audit import verify as audit_verify
from .egress import change as egress_change
from .egress import log as egress_log
from .egress import show as egress_show
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
from .mcp import install as mcp_install
from .mcp import serve as mcp_serve
from .mcp import uninstall as mcp_uninstall
from .sandbox import test as sandbox_test
from .secret import delete as secret_delete
from .secret import list as secret_list
from .secret import set as secret_set
from .token import link as token_link
from .token import list as token_list
from .token import new as token_new
from .token import revoke
from .webhook import add as webhook_add
from .webhook import delete as webhook_delete
from .webhook import list as webhook_list
from .webhook import test as webhook_test
from .webhook.dead import list as dead_list
from .webhook.dead import retry as dead_retry

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
account.command("quota")(account_quota.quota)
account.command("invite")(account_invite.invite)

egress = _group("egress", "What machines may reach, and what they have tried to.")
egress.command("show")(egress_show.show)
egress.command("allow")(egress_change.allow)
egress.command("deny")(egress_change.deny)
egress.command("set")(egress_change.set_)
egress.command("default")(egress_change.default)
egress.command("log")(egress_log.log)

secret = _group("secret", "Values that machines use and never see.")
secret.command("set")(secret_set.set_)
secret.command("list")(secret_list.list_)
secret.command("delete")(secret_delete.delete)
# It does something by itself, too: then no command must follow.
_ALONE: dict[str, Any] = {**_STYLE, "no_args_is_help": False, "invoke_without_command": True, "subcommand_metavar": "[COMMAND]"}
audit = typer.Typer(**_ALONE)
app.add_typer(audit, name="audit")
audit.callback()(audit_show.show)
audit.command("verify")(audit_verify.verify)
audit.command("export")(audit_export.export)

webhook = _group("webhook", "Be told of events over HTTP.")
webhook.command("add")(webhook_add.add)
webhook.command("list")(webhook_list.list_)
webhook.command("test")(webhook_test.send_test)
webhook.command("delete")(webhook_delete.delete)
dead = _group("dead", "What could not be delivered.", webhook)
dead.command("list")(dead_list.list_)
dead.command("retry")(dead_retry.retry)

mcp = _group("mcp", "The way in for AI tools.")
mcp.command("serve")(mcp_serve.serve)
mcp.command("install")(mcp_install.install)
mcp.command("uninstall")(mcp_uninstall.uninstall)

app.command("usage")(usage.usage)
app.command("settings")(serve.settings)
app.command("setup")(setup.setup)
app.command("doctor")(doctor.doctor)
sandbox = _group("sandbox", "The walls of a machine.")
sandbox.command("test")(sandbox_test.test)

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
