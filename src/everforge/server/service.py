"""What every handler may use: the machines, the accounts, the settings. Nothing here is changed by a request."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import HTTPConnection

from everforge.accounts.service import Accounts
from everforge.egress.doors import EgressDoors
from everforge.machines.service import Machines
from everforge.signals import Signals
from everforge.webhooks.service import Webhooks

from .arrivals import Arrivals
from .departures import Departures
from .metrics import Metrics
from .settings import ServerSettings
from .streams import Streams
from .witness import Witness


@dataclass(frozen=True, slots=True)
class Service:
    machines: Machines  # the owner's door; `of` gives the others
    egress: EgressDoors
    accounts: Accounts
    settings: ServerSettings
    metrics: Metrics
    streams: Streams
    arrivals: Arrivals
    departures: Departures
    witness: Witness
    webhooks: Webhooks
    signals: Signals

    def url(self, connection: HTTPConnection) -> str:
        """Where the client reached us, or where the settings say."""
        return self.settings.public_url.rstrip("/") or str(connection.base_url).rstrip("/")
