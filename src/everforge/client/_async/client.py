"""A server, as a program sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

from everforge.wire import api

from ..config import find_access
from ..inputs import wait_seconds
from .audit import AsyncAudit
from .door import RETRY_SECONDS, AsyncDoor, new_key
from .egress import AsyncEgressDefault, AsyncSecrets
from .machine import AsyncMachine
from .tokens import AsyncAccounts, AsyncTokens
from .webhooks import AsyncWebhooks

MACHINES_A_PAGE = 500


class AsyncEverforge:
    """Without arguments it finds its server by itself: the environment, what `everforge login` left, or the server on this computer."""

    def __init__(
        self,
        token: str | None = None,
        base_url: str | None = None,
        *,
        retry_seconds: float = RETRY_SECONDS,
        on_connection: Callable[[bool], Any] | None = None,
    ) -> None:
        """`retry_seconds`: for how long a request is tried again, where that is safe and may help. `on_connection` is told False when a stream has
        lost the server, and True when it has found it again."""
        access = find_access(token, base_url)
        self.base_url = access.base_url
        self._door = AsyncDoor(access, wait_seconds(retry_seconds, "retry_seconds") or 0.0, on_connection)
        self.tokens = AsyncTokens(self._door)
        self.accounts = AsyncAccounts(self._door)
        self.secrets = AsyncSecrets(self._door)
        self.egress = AsyncEgressDefault(self._door)
        self.audit = AsyncAudit(self._door)
        self.webhooks = AsyncWebhooks(self._door)

    def __repr__(self) -> str:
        return f"<everforge at {self.base_url}>"

    async def __aenter__(self) -> AsyncEverforge:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """The connections; machines go on."""
        await self._door.close()

    # --- machines ----------------------------------------------------------------------------------------------------------------------------

    async def create(
        self,
        name: str | None = None,
        *,
        tags: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        memory_mb: int | None = None,
        cpus: float | None = None,
        disk_mb: int | None = None,
        processes: int | None = None,
        image: str | None = None,
        env: Mapping[str, str] | None = None,
        egress: api.Egress | None = None,
        egress_allow: Sequence[str] | None = None,
        idle_seconds: float | None = None,
        expires_at: str | None = None,
        history: Literal["idle", "each"] | None = None,
        durability: Literal["idle", "each"] | None = None,
        from_snapshot: tuple[str, str] | None = None,
    ) -> AsyncMachine:
        """A new machine; what is not given is as the server has it. `from_snapshot` is a machine's name and a snapshot of it."""
        request = api.NewMachine(
            name=name, tags=_dict(tags), metadata=_dict(metadata), memory_mb=memory_mb, cpus=cpus, disk_mb=disk_mb, processes=processes,
            image=image, env=_dict(env), egress=egress, egress_allow=None if egress_allow is None else [*egress_allow],
            idle_seconds=idle_seconds, expires_at=expires_at, history=history, durability=durability,
            from_snapshot=None if from_snapshot is None else api.SnapshotRef(machine=from_snapshot[0], snapshot=from_snapshot[1]),
        )  # fmt: skip
        made = await self._door.post(api.MachineCreated, "/machine/new", request, key=new_key())
        return AsyncMachine(self._door, made.machine_name)

    def machine(self, name: str) -> AsyncMachine:
        """One that is there already. Asks nobody; whether it is there shows when it is used."""
        return AsyncMachine(self._door, name)

    async def machines(
        self, *, tags: Mapping[str, str] | None = None, state: api.State | None = None, prefix: str | None = None, after: str | None = None
    ) -> AsyncIterator[api.ListedMachine]:
        """Newest first; pages by itself. Of `tags` all must match. `after` is the `next` of a page that was read before."""
        pairs = [f"{name}={value}" for name, value in (tags or {}).items()]
        while True:
            query = {"tag": pairs, "state": state, "name_prefix": prefix, "limit": MACHINES_A_PAGE, "after": after}
            page = await self._door.get(api.MachineList, "/machine/list", query)
            for found in page.machines:
                yield found
            if page.next is None:
                return
            after = page.next

    # --- the account -------------------------------------------------------------------------------------------------------------------------

    async def whoami(self) -> str:
        return (await self._door.get(api.Whoami, "/whoami")).account

    async def account(self) -> api.Account:
        return await self._door.get(api.Account, "/account")

    async def usage(self) -> api.Usage:
        return await self._door.get(api.Usage, "/usage")


def _dict(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if given is None else dict(given)
