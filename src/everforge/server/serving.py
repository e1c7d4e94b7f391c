"""A server from its first to its last moment: machines, accounts, and the door that clients come through."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import uvicorn

from everforge.accounts.mail import mailer_of
from everforge.accounts.service import Accounts
from everforge.audit.recorder import Recorder
from everforge.audit.settings import AuditSettings
from everforge.egress.doors import EgressDoors
from everforge.machines.service import Machines
from everforge.progress import Progress
from everforge.webhooks.service import Webhooks
from everforge.webhooks.settings import WebhookSettings
from everforge.wire.errors import InvalidInput

from . import address
from .app import application
from .arrivals import Arrivals
from .bootstrap import close_machines, open_machines
from .configuration import Configuration
from .connections import Addresses, limited
from .departures import Departures
from .lookout import Lookout
from .metrics import Metrics
from .service import Service
from .settings import ServerSettings
from .socketconnections import limited_sockets
from .streams import Streams
from .witness import Witness

log = logging.getLogger(__name__)
BACKLOG = 2048


class Door(uvicorn.Server):
    """uvicorn, but signals are ours: machines are still to be put to sleep when it has closed. And what has no end of its own ends first."""

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self._streams = streams

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._streams.stop()
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()  # who did not take the last of it had its time

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def door(service: Service) -> Door:
    settings, addresses = service.settings, Addresses()
    config = uvicorn.Config(
        application(service),
        http=limited(settings, addresses),
        ws=limited_sockets(settings, addresses, service.arrivals),
        ws_max_size=settings.body_bytes_max,
        ws_ping_interval=None,  # ForeverVM's Rust client takes a ping for a message
        ws_ping_timeout=None,
        ws_per_message_deflate=False,  # costs more time than a local network, and a little can become a lot
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # X-Forwarded-For is whatever a client likes: it would choose its own address, for the log and for every limit
        timeout_keep_alive=cast(int, settings.keep_alive_seconds),  # it takes fractions too
        timeout_graceful_shutdown=cast(int, settings.stop_seconds),
    )
    return Door(config, service.streams)


def service_of(
    machines: Machines, accounts: Accounts, settings: ServerSettings, audit: AuditSettings | None = None, webhooks: WebhookSettings | None = None
) -> Service:
    audit, webhooks = audit or AuditSettings(), webhooks or WebhookSettings()
    forge, metrics = machines.forge, Metrics()
    assert isinstance(forge.doors, EgressDoors)  # bootstrap gave them
    hooks = Webhooks(forge.store.webhooks, forge.store.accounts, webhooks)
    forge.quotas = forge.doors.allowances.quotas = accounts.quotas
    forge.signals.listen(Lookout(hooks, metrics, webhooks).hear)
    return Service(
        machines,
        forge.doors,
        accounts,
        settings,
        metrics,
        Streams(accounts, settings.streams_per_account_max),
        Arrivals(settings.arriving_bytes_max),
        Departures(settings.departing_bytes_max),
        Witness(Recorder(forge.store.audit, audit), audit, forge.signals, forge.has),
        hooks,
        forge.signals,
    )


def listen(settings: ServerSettings) -> socket.socket:
    """Bound before anything else is done: that the port is taken is known at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, or asyncio does not set TCP_NODELAY
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except (OSError, OverflowError, TypeError) as e:  # TypeError: a host that cannot be a name
        listener.close()
        no_address = isinstance(e, socket.gaierror | TypeError) or getattr(e, "errno", None) == errno.EADDRNOTAVAIL
        advice = "give an address of this computer with --host" if no_address else "choose another with --port"
        reason = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
        raise InvalidInput(f"the server cannot listen at {settings.host} port {settings.port}: {reason}; {advice}") from None
    listener.listen(BACKLOG)
    return listener


def url_of(settings: ServerSettings, listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return settings.public_url.rstrip("/") or f"http://{host}:{port}"


@asynccontextmanager
async def served(service: Service, listener: socket.socket) -> AsyncGenerator[asyncio.Task[None]]:
    """Answers from the beginning of the block to its end; what is yielded ends when it no longer does."""
    server = door(service)
    async with service.webhooks.running(), service.witness.recorder.running():
        task = asyncio.ensure_future(server.serve([listener]))
        try:
            while not server.started and not task.done():  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.005)
            yield task
        finally:
            server.should_exit = True
            await asyncio.wait([task])
            listener.close()


async def serve(configuration: Configuration, data: Path, progress: Progress, ready: Callable[[str, Accounts], None]) -> None:
    """Until SIGTERM or Ctrl-C; then every machine is put to sleep, or left to the next server as the settings say."""
    stop = _stop_on_signals()
    listener = listen(configuration.server)
    async with contextlib.AsyncExitStack() as undo:
        undo.callback(listener.close)
        linger_seconds = configuration.server.warden_linger_seconds
        machines, folder = await open_machines(
            data, configuration.machines, egress=configuration.egress, progress=progress, warden_linger_seconds=linger_seconds
        )
        undo.push_async_callback(close_machines, machines, folder)
        if stop.is_set():
            return  # nobody waits for it any more
        accounts = Accounts(machines.forge.store.accounts, folder.path, configuration.accounts, mailer_of(configuration.accounts))
        await accounts.start()
        undo.push_async_callback(accounts.close)
        service = service_of(machines, accounts, configuration.server, configuration.audit, configuration.webhooks)
        url = url_of(configuration.server, listener)
        async with served(service, listener) as serving:
            undo.callback(address.forget, folder.path)
            await asyncio.to_thread(address.tell, folder.path, url)
            if not stop.is_set():
                ready(url, accounts)
            await asyncio.wait([serving, asyncio.ensure_future(stop.wait())], return_when=asyncio.FIRST_COMPLETED)
            progress.step("stopping: machines go to sleep")


def _stop_on_signals() -> asyncio.Event:
    """The first one stops in order; a second Ctrl-C ends the process where it is, which costs nothing that a crash would not."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def asked(number: signal.Signals) -> None:
        stop.set()
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked, number)
    return stop
