"""The seam between machines and whatever remembers them.

`Store` is a database: records and tapes, one `commit` for everything that must happen together. `Snapshots` is where saved sandboxes lie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from everforge.wire.events import Event, Position
from everforge.wire.ids import AccountId, MachineId, MachineName, SandboxId, SnapshotId

from .accounts import AccountBook
from .audit import AuditBook
from .egress import EgressBook
from .quotas import UNLIMITED, Quota
from .webhooks import WebhookBook

History = Literal["idle", "each"]
Durability = Literal["idle", "each"]
PointReason = Literal["template", "idle", "each", "named", "before_rollback", "before_reset", "fork"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRecord:
    """One row: everything that a new server must know of a machine."""

    id: MachineId
    name: MachineName
    account: AccountId
    created_at: float
    last_used_at: float
    residence: str  # a word of machines.lifecycle.Residence
    engine: str
    image: str  # digest
    memory_mb: int
    cpus: float
    disk_mb: int
    processes: int
    idle_seconds: float
    history: History = "idle"
    durability: Durability = "idle"
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    egress: Mapping[str, Any] = field(default_factory=dict[str, Any])  # what it may reach, in the words of egress.policy; empty: nothing
    sandbox: SandboxId | None = None  # the one that is, or is about to be, this machine
    epoch: int = 0  # of the link; raised at every restore
    head: SnapshotId | None = None  # the point that its memory comes from, or is
    next_instruction: int = 0
    unsaved_from: int = 0  # the first instruction whose effects are not in `head`
    error: str | None = None  # why it is broken, or why the last wake failed
    failed_wakes: int = 0
    notice: str | None = None  # what the next result must tell: memory that was lost, a state gone back to
    source: MachineId | None = None  # the machine it was forked from, and
    source_position: Position | None = None  # the last position of that one's tape that is also on this one's
    expires_at: float | None = None  # it is deleted soon after
    awake_since: float | None = None
    deleted_at: float | None = None  # set: its name is free, and it is in no list; row and tape stay until purged


AT_END = Position(-2)  # as a point's position: the end of the tape as the change that adds the point leaves it


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRecord:
    """A place on a tape that a machine can go back to: a snapshot, and where the tape was."""

    snapshot: SnapshotId
    machine: MachineId
    position: Position  # last position on the tape when it was taken; may be AT_END in a Change
    instruction: int | None  # the last one whose effects it holds
    created_at: float
    reason: PointReason
    name: str | None = None
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What must become true together, or not at all."""

    machine: MachineId
    set: Mapping[str, Any] = field(default_factory=dict[str, Any])  # fields of MachineRecord
    events: Sequence[Event] = ()  # appended to the tape, in order
    add_points: Sequence[PointRecord] = ()
    drop_points: Sequence[SnapshotId] = ()
    awake_ms: int = 0  # how long it was awake until now, for the usage of its account
    durable: bool = False  # survives a power cut when it returns; otherwise it survives a crash of the server


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineQuery:
    account: AccountId | None = None
    tags: Mapping[str, str] = field(default_factory=dict[str, str])  # all must match exactly
    name_prefix: str = ""
    residences: frozenset[str] = frozenset()  # empty: any but deleted
    before: tuple[float, MachineId] | None = None  # (created_at, id) of the last one seen; newest first
    limit: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """What a request with an idempotency key has made. (Those of instructions are on the tape.)"""

    account: AccountId
    route: str
    key: str
    request: str  # a hash of it
    made: Sequence[MachineId]
    created_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRecord:
    residences: Mapping[str, int]  # how many machines, deleted ones aside
    instructions: int  # accepted, and
    runtime_ms: int  # how long they ran: also those of machines that are gone
    egress_bytes: int  # sent out by its machines, and received
    awake_ms: int  # of all its machines together, those that are awake now included
    disk_bytes: int  # of snapshots as they were saved; what they share with others is stored once, and takes less


class Store(Protocol):
    @property
    def accounts(self) -> AccountBook: ...

    @property
    def egress(self) -> EgressBook: ...

    @property
    def audit(self) -> AuditBook: ...

    @property
    def webhooks(self) -> WebhookBook: ...

    async def create(
        self,
        record: MachineRecord,
        events: Sequence[Event] = (),
        points: Sequence[PointRecord] = (),
        key: KeyRecord | None = None,
        quota: Quota = UNLIMITED,
    ) -> Sequence[Event]:
        """A new machine, durably. Returns the events with their positions.

        Raises NameTaken, MachineNotFound (of a fork's source), AccountNotFound (deleted), KeyReused, DiskFull; QuotaExceeded where the account
        would have more than its quota, also when others are made at the same time.
        """
        ...

    async def create_together(
        self, machines: Sequence[tuple[MachineRecord, Sequence[Event], PointRecord]], key: KeyRecord | None = None, quota: Quota = UNLIMITED
    ) -> None:
        """New machines, each with first entries of its own and its first point: all of them, durably, or none. Raises as `create` does."""
        ...

    async def made_with_key(self, account: AccountId, route: str, key: str) -> KeyRecord | None: ...

    async def prune_keys(self, before: float) -> None:
        """Forget keys that were used before that time."""
        ...

    async def commit(self, change: Change) -> Sequence[Event]:
        """Apply it in one transaction and return the events with their positions. Raises MachineNotFound, NameTaken, InvalidInput, DiskFull, and
        KeyReused where it would accept an instruction with a key that is on this tape already.

        Changes of one machine take effect in the order of the calls. Cancelling the caller does not undo it. A point that is there
        already is replaced.
        """
        ...

    async def machine(self, id: MachineId) -> MachineRecord | None:
        """Also one that is deleted (`deleted_at` is set), until it is purged."""
        ...

    async def find(self, account: AccountId, name: MachineName) -> MachineRecord | None:
        """By name, among those of the account that are not deleted."""
        ...

    async def machines(self, query: MachineQuery) -> Sequence[MachineRecord]:
        """Newest first. The next page is asked for with `before` = (created_at, id) of the last one: stable while others come and go."""
        ...

    async def expiring(self, before: float, limit: int) -> Sequence[MachineRecord]:
        """Machines that expire before that time, the first to expire first."""
        ...

    async def usage(self, account: AccountId) -> UsageRecord: ...

    async def add_egress(self, account: AccountId, egress_bytes: int) -> None:
        """So many bytes more went out of the account's machines, or came in."""
        ...

    async def counts(self) -> Mapping[str, int]:
        """How many machines there are in each residence, deleted ones aside."""
        ...

    async def events(self, machine: MachineId, after: Position, limit: int) -> Sequence[Event]:
        """Entries after a position, oldest first, those inherited from a fork's source included. Raises MachineNotFound.

        At most `limit`, and fewer when they are large; none only when there are none. An output is cut where it begins before `after`.
        """
        ...

    async def end_position(self, machine: MachineId) -> Position:
        """The last position given, START if none was: every later entry lies after it. Raises MachineNotFound."""
        ...

    async def received(self, machine: MachineId, epoch: int) -> int:
        """The highest frame number of this epoch that is on the tape; 0 if none."""
        ...

    async def unended(self, machine: MachineId) -> Sequence[Event]:
        """`Accepted` entries without an `Ended`, oldest first; its own, not those of a fork's source."""
        ...

    async def machines_with_unended(self) -> Sequence[MachineId]:
        """Living machines that have such entries."""
        ...

    async def instruction(self, machine: MachineId, instruction: int) -> tuple[Event, Event | None] | None:
        """Its `Accepted` and, if there is one, its `Ended`; those inherited from a fork's source included."""
        ...

    async def instructions(self, machine: MachineId, after: int, limit: int) -> tuple[Sequence[tuple[Event, Event | None]], bool]:
        """The same of the first `limit` with a number above `after`, in their order, and whether there are more.

        Fewer when they are large: INSTRUCTIONS_BYTES_MAX and the one that goes over it. None only when there are none.
        """
        ...

    async def displayed(self, machine: MachineId, instruction: int) -> Sequence[Event]:
        """Its `Displayed` entries, oldest first; those inherited from a fork's source included. Not more than DISPLAYED_BYTES_MAX of them."""
        ...

    async def calls(self, machine: MachineId, instruction: int) -> Mapping[int, Position | None]:
        """Calls of functions of the client's program by this instruction: the position of the answer of each, None where there is none.

        Its own, not those of a fork's source: no fork waits for them.
        """
        ...

    async def outputs(self, machine: MachineId, instruction: int | None) -> int:
        """How many output lines are on the tape for it: the next line's seq."""
        ...

    async def accepted_with_key(self, machine: MachineId, key: str) -> Event | None:
        """Its own: a key that was used on a fork's source is free again."""
        ...

    async def points(self, machine: MachineId) -> Sequence[PointRecord]:
        """Oldest first; those inherited from a fork's source are not included."""
        ...

    async def referenced_snapshots(self) -> frozenset[SnapshotId]:
        """Every snapshot that the head or a point of any machine names, deleted ones aside."""
        ...

    async def snapshot_in_use(self, snapshot: SnapshotId) -> bool:
        """Does the head or a point of any machine name it, deleted ones aside?"""
        ...

    async def is_head(self, snapshot: SnapshotId) -> bool:
        """Does the head of any machine name it, deleted ones aside?"""
        ...

    async def images_in_use(self) -> frozenset[str]:
        """Digests of the images of all machines, deleted ones aside."""
        ...

    async def purge(self, machine: MachineId) -> None:
        """Forget a deleted machine's row and tape; what a living fork still refers to stays until that one goes. Raises WrongState if it lives."""
        ...

    async def purge_deleted(self, before: float) -> int:
        """`purge` of every machine that was deleted before that time; returns how many."""
        ...

    async def unclean_boot(self) -> bool:
        """True once per start, when the computer went down while a server was running: the store has then moved every counter ahead."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a snapshot is and what it needs; lies beside its files, with their hashes."""

    snapshot: SnapshotId
    machine: MachineId | None  # None for a template
    engine: str
    engine_build: str
    image: str
    memory_mb: int
    disk_mb: int
    epoch: int  # of the link when it was saved, and
    sent: int  # the last record numbers: what `hello` must say after a restore
    received: int
    instruction: int | None
    created_at: float
    files: Mapping[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])  # name -> (bytes, XXH3-128)

    @property
    def size_bytes(self) -> int:
        return sum(size for size, _ in self.files.values())


class Snapshots(Protocol):
    async def begin(self) -> Path:
        """A new, empty, uniquely named partial folder to save into."""
        ...

    async def finish(self, partial: Path, manifest: Manifest) -> Manifest:
        """Hash, write the manifest, fsync files and folder, rename, fsync the parent: durable and visible when it returns. Raises DiskFull."""
        ...

    async def abandon(self, partial: Path) -> None: ...

    async def open(self, id: SnapshotId) -> tuple[Manifest, Path]:
        """Manifest and folder, the manifest itself checked, file names and sizes too. Raises SnapshotNotFound, SnapshotDamaged; and, where it had
        to be unpacked first, DiskFull and WakeFailed.

        The folder is there for as long as the snapshot is held.
        """
        ...

    def hold(self, id: SnapshotId) -> AbstractContextManager[None]:
        """While it is held, it is not packed."""
        ...

    async def present(self, ids: Sequence[SnapshotId]) -> Sequence[SnapshotId]:
        """Those of them that are there, sound or not."""
        ...

    async def unpacked(self, ids: Sequence[SnapshotId]) -> Sequence[SnapshotId]:
        """Those of them that take more room than they must."""
        ...

    async def pack(self, id: SnapshotId, base: SnapshotId | None) -> None:
        """Keep only what neither `base`, a template, nor another packed snapshot of the machine holds. It can be opened as before, more slowly.

        One that is held, or cannot be packed, stays as it is.
        """
        ...

    async def costs(self, ids: Sequence[SnapshotId]) -> Mapping[SnapshotId, int]:
        """Bytes on the disk, of the packed ones among them: what they share with others is divided by how many share it."""
        ...

    async def verify_small(self, manifest: Manifest, folder: Path) -> None:
        """Hashes of everything but the large memory image; quick, to be done before a restore begins. Raises SnapshotDamaged."""
        ...

    async def verify_large(self, manifest: Manifest, folder: Path) -> None:
        """The rest; may run beside a restore, whose guest does nothing before its `go`. Raises SnapshotDamaged."""
        ...

    async def delete(self, id: SnapshotId) -> None: ...

    async def sweep(self, keep: frozenset[SnapshotId], partials_too: bool) -> int:
        """Remove what nothing refers to; returns how many."""
        ...

    async def close(self) -> None: ...
