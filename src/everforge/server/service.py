"""What every handler may use: the machines, the accounts, the settings. Nothing here is changed by a request."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import HTTPConnection

from everforge.accounts.service import Accounts
from everforge.machines.service import Machines

from .arrivals import Arrivals
from .departures import Departures
from .metrics import Metrics
from .settings import ServerSettings
from .streams import Streams


@dataclass(frozen=True, slots=True)
class Service:
    machines: Machines  # the owner's door; `of` gives the others
    accounts: Accounts
    settings: ServerSettings
    metrics: Metrics
    streams: Streams
    arrivals: Arrivals
    departures: Departures

    def url(self, connection: HTTPConnection) -> str:
        """Where the client reached us, or where the settings say."""
        return self.settings.public_url.rstrip("/") or str(connection.base_url).rstrip("/")
