"""The egress door of one machine: asks its policy, lets through or refuses, and puts everything on the record."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from . import addresses
from .allowances import Spending
from .attempts import Attempt, Journal
from .authority import Authority
from .bytestream import ByteStream
from .conversation import Conversation, Refused
from .limits import EgressLimits, Meter, OverLimit
from .mux import Mux, Stream
from .names import Lookup
from .outside import Closed, Outside, Unreachable, with_aliases
from .packages import PackageIndex
from .policy import Grant, Place, Policy, Refusal, Word, decide
from .secrets import Secret
from .turns import Turns

CONVERSATIONS_MAX = 256  # of one machine at once
BODIES_MAX = 32  # held whole at once, of one machine; the next ones wait
OVER_LIMIT_SECONDS = 0.5  # that one too many waits for its refusal: to be refused must not be quicker than to be let through
OVER_LIMIT_NOTED_SECONDS = 1.0  # between two of them on the record: who tries too much must not write it full
TOO_MANY = "(too many at once)"  # in place of a host


@dataclass(frozen=True, slots=True)
class World:
    """What all doors of a server share."""

    outside: Outside
    index: PackageIndex
    limits: EgressLimits
    authority: Authority
    trust: ssl.SSLContext  # whom the door itself believes, as this computer does
    widest: Word = "public"  # that any machine of this server may have
    conversations_max: int = 4096  # of all machines at once: each may take a descriptor, and the server needs its own
    conversations: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])


class Door:
    """`policy` and `secrets` are asked for every attempt, so that a change counts at once."""

    def __init__(
        self,
        sock: socket.socket,
        name: str,
        world: World,
        policy: Callable[[], Policy],
        secrets: Callable[[], Sequence[Secret]],
        journal: Journal,
        meter: Meter | None = None,
        spending: Spending | None = None,
        lookup: Lookup | None = None,
    ) -> None:
        self.limits = world.limits
        self._name = name
        self._world = world
        self._outside = replace(world.outside, lookup=lookup or world.outside.lookup)
        self._policy = policy
        self._secrets = secrets
        self._journal = journal
        self._meter = meter or Meter(world.limits)
        self._spending = spending
        self.turns = Turns()
        self.bodies = asyncio.Semaphore(BODIES_MAX)
        self._tasks: set[asyncio.Task[None]] = set()
        self._granted: dict[int, tuple[Attempt, Grant]] = {}  # and not over
        self._over_noted_at = -OVER_LIMIT_NOTED_SECONDS
        self._over_unnoted = 0
        self._mux = Mux(sock, self._opened)

    def begin(self, nonce: bytes) -> None:
        """A porter is about to come."""
        self._mux.begin(nonce)

    async def close(self) -> None:
        self._mux.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _opened(self, stream: Stream) -> None:
        everybody = self._world.conversations
        # Those of streams that the guest has cut count, too: each may still wait for a name or a server.
        if len(self._tasks) >= CONVERSATIONS_MAX or len(everybody) >= self._world.conversations_max:
            whose = f"this machine has {CONVERSATIONS_MAX}" if len(self._tasks) >= CONVERSATIONS_MAX else "the machines of this server have too many"
            self._note_over(attempt := Attempt(TOO_MANY, 0, "tcp"), f"{whose} connections at once, which is the most")
            self._journal.ended(attempt)
            stream.cut()
            return
        task = asyncio.create_task(Conversation(stream, self).run())
        for tasks in (self._tasks, everybody):
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    # --- what a conversation asks ----------------------------------------------------------------------------------------------------------

    def describe(self) -> str:
        policy = self._policy()
        rules = f" and {len(policy.rules)} rules: {', '.join(policy.allow[:20])}" if policy.rules else ""
        return f"This is the way out of machine {self._name}. Its egress policy is `{policy.word}`{rules}."

    async def begin_attempt(self, attempt: Attempt) -> Grant:
        await self._pass_meter(attempt)
        self._journal.began(attempt)
        if self._spending is not None:
            try:
                await self._spending.check()
            except OverLimit as e:
                attempt.refuse(str(e))
                self._journal.met(e.limit)
                raise
        found = self._decide(attempt, await self._index())
        if isinstance(found, Refusal):
            attempt.refuse(found.why)
            raise Refused(f"{found.why}. {self._remedy(attempt)}")
        attempt.verdict, attempt.by = "allowed", found.by
        self._granted[id(attempt)] = attempt, found
        return found

    async def _pass_meter(self, attempt: Attempt) -> None:
        """Raises OverLimit, after a while."""
        try:
            self._meter.connect()
        except OverLimit as e:
            self._note_over(attempt, str(e))
            self._journal.met(e.limit)
            await asyncio.sleep(OVER_LIMIT_SECONDS)
            raise

    def _note_over(self, attempt: Attempt, why: str) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._over_noted_at < OVER_LIMIT_NOTED_SECONDS:
            self._over_unnoted += 1
            return
        more = f" ({self._over_unnoted} more before it were refused for such a reason)" if self._over_unnoted else ""
        self._over_noted_at, self._over_unnoted = now, 0
        attempt.refuse(why + more)
        self._journal.began(attempt)

    def _remedy(self, attempt: Attempt) -> str:
        """A rule is none for an address that no policy opens."""
        literal = addresses.parse(attempt.host)
        if literal is not None and (attempt.host, attempt.port) not in self._outside.opened and (why := addresses.is_closed(literal)):
            return f"And it is {why}: {_closed(attempt)}"
        is_index = (attempt.host, attempt.port) in with_aliases(self._world.index.places)
        if self._world.widest == "none" or (self._world.widest == "packages" and not is_index):
            return f"The owner of this server lets no machine have more than `{self._world.widest}` (the setting egress_max)"
        if is_index:
            return f"To allow it: everforge egress set {self._name} packages"
        return f"To allow it: everforge egress allow {self._name} {_target(attempt)}"

    async def _index(self) -> Collection[Place]:
        """Of the package index everything, where the policy asks for it."""
        return await self._world.index.known() if self._policy().word in ("packages", "public") else ()

    def _decide(self, attempt: Attempt, index: Collection[Place]) -> Grant | Refusal:
        """By the policy as it is by now."""
        return decide(self._policy(), attempt.host, attempt.port, attempt.speech, with_aliases(index), self._outside.opened)

    def reconsider(self) -> None:
        """The policy was changed: what it would no longer allow, or not so far, is cut. At once: by what is known of the package index."""
        for attempt, granted in list(self._granted.values()):
            found = self._decide(attempt, self._world.index.places)
            if isinstance(found, Grant) and (found.speech, found.index) == (granted.speech, granted.index):
                continue
            if attempt.cut is not None:
                attempt.fail(f"cut when the policy was changed: {found.why if isinstance(found, Refusal) else 'it allows less than before'}")
                attempt.cut()

    def secrets(self, attempt: Attempt) -> Sequence[Secret]:
        return [secret for secret in self._secrets() if (attempt.host, attempt.port) in secret.hosts]

    def authority(self, host: str) -> ssl.SSLContext:
        return self._world.authority.context(host)

    def note(self, attempt: Attempt) -> None:
        self._journal.began(attempt)

    async def connect(self, attempt: Attempt, grant: Grant, *, tls: bool = False) -> ByteStream:
        context = self._world.trust if tls else None
        try:
            stream, attempt.address = await self._outside.connect(attempt.host, attempt.port, index=grant.index, tls=context)
        except Closed as e:
            attempt.address = e.address
            attempt.refuse(str(e))
            raise Refused(f"{e}: {_closed(attempt)}") from None
        except Unreachable as e:
            attempt.fail(str(e))
            raise
        if attempt.verdict != "allowed":  # not any more: the policy was changed meanwhile
            stream.cut()
            raise Refused(attempt.why)
        return stream

    async def refuse(self, attempt: Attempt, why: str) -> None:
        try:
            await self._pass_meter(attempt)
            attempt.refuse(why)
            self._journal.began(attempt)
        finally:
            self._journal.ended(attempt)

    def end(self, attempt: Attempt) -> None:
        self._granted.pop(id(attempt), None)
        self._journal.ended(attempt)

    async def sent(self, attempt: Attempt, count: int) -> None:
        attempt.sent_bytes += count
        await self._pass_bytes(count)

    async def received(self, attempt: Attempt, count: int) -> None:
        attempt.received_bytes += count
        await self._pass_bytes(count)

    async def _pass_bytes(self, count: int) -> None:
        try:
            if self._spending is not None:
                self._spending.spend(count)
            await self._meter.pass_bytes(count)
        except OverLimit as e:
            self._journal.met(e.limit)
            raise


def _closed(attempt: Attempt) -> str:
    option = f"everforge serve --allow-host {attempt.place}"
    return (
        f"closed to machines whatever their policy; the owner of this server can restart it with {option}, and the machine needs a rule for it, too"
    )


def _target(attempt: Attempt) -> str:
    return attempt.host if attempt.port in (80, 443) else attempt.place
