"""A whole server in a test: HTTP and WebSockets on a port of its own, on the fake engine and a store in memory, or on whatever machines it is given."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from everforge.accounts.mail import Mailer
from everforge.accounts.service import Accounts
from everforge.accounts.settings import AccountSettings
from everforge.audit.settings import AuditSettings
from everforge.machines.service import Machines
from everforge.machines.settings import MachineSettings
from everforge.server.service import Service
from everforge.server.serving import listen, served, service_of, url_of
from everforge.server.settings import ServerSettings
from everforge.store.base import Store
from everforge.webhooks.settings import WebhookSettings

from .house import QUICK, House

QUIET = ServerSettings(port=0, quiet_seconds=0.2, early_seconds=0.1, stop_seconds=1.0)
OPEN = AccountSettings(signup="open", stranger_requests_per_second=0.0)  # tests come without a token, and often


@dataclass
class Running:
    service: Service
    url: str
    token: str  # the owner's
    folder: Path  # where owner.token lies
    house: House | None = None

    @property
    def machines(self) -> Machines:
        return self.service.machines

    @property
    def accounts(self) -> Accounts:
        return self.service.accounts

    @property
    def ws(self) -> str:
        return self.url.replace("http", "ws", 1)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    async def account(self, name: str) -> str:
        """The token of a new account."""
        owner = await self.accounts.identify(self.token)
        made = await self.accounts.create_account(owner, name)
        assert made.token is not None
        return made.token

    async def scoped(self, *scopes: str) -> str:
        """A token of the owner's that may do no more than this."""
        owner = await self.accounts.identify(self.token)
        return (await self.accounts.new_token(owner, scopes=scopes)).token


@asynccontextmanager
async def service(
    settings: ServerSettings = QUIET,
    machines: MachineSettings = QUICK,
    *,
    accounts: AccountSettings = OPEN,
    mailer: Mailer | None = None,
    audit: AuditSettings | None = None,
    webhooks: WebhookSettings | None = None,
    store: Store | None = None,
) -> AsyncGenerator[Running]:
    """On the fake engine."""
    house = House(machines, store)
    await house.start()
    try:
        async with serving(house.machines, settings, accounts=accounts, mailer=mailer, audit=audit, webhooks=webhooks) as running:
            running.house = house
            yield running
    finally:
        await house.close()


@asynccontextmanager
async def serving(
    machines: Machines,
    settings: ServerSettings = QUIET,
    *,
    accounts: AccountSettings = OPEN,
    mailer: Mailer | None = None,
    audit: AuditSettings | None = None,
    webhooks: WebhookSettings | None = None,
    folder: Path | None = None,
) -> AsyncGenerator[Running]:
    """In front of machines that are there already."""
    async with AsyncExitStack() as undo:
        if folder is None:
            folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="everforge-service-")))
        known = Accounts(machines.forge.store.accounts, folder, accounts, mailer)
        await known.start()
        undo.push_async_callback(known.close)
        listener = listen(settings)
        made = service_of(machines, known, settings, audit, webhooks)
        await undo.enter_async_context(served(made, listener))
        yield Running(made, url_of(settings, listener), (folder / "owner.token").read_text().strip(), folder)
