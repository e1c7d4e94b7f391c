"""How an instruction is taken: a number, a place on the agenda, an entry on the tape; in this order, or not at all."""

from __future__ import annotations

import asyncio

from everforge.wire.errors import EverforgeError, KeyReused, Uncertain
from everforge.wire.events import Accepted

from .agenda import Agenda, Instruction, Work
from .dossier import Dossier
from .residency import Residency


class Intake:
    def __init__(self, dossier: Dossier, residency: Residency, agenda: Agenda) -> None:
        self._dossier = dossier
        self._residency = residency
        self._agenda = agenda
        self._next = dossier.record.next_instruction

    async def take(self, work: Work, key: str | None) -> tuple[int, bool]:
        """Its number, and whether it is new. The store takes a key once; so it is looked for only where the instruction was not taken, for
        whatever reason."""
        try:
            return await self._take(work, key), True
        except EverforgeError:
            before = None if key is None else await self._dossier.store.accepted_with_key(self._dossier.record.id, key)
            if not isinstance(before, Accepted):
                raise
        if Work(before.code, before.timeout_seconds, before.env, before.functions) != work:
            raise KeyReused(f"the idempotency key {key!r} was used for another instruction ({before.instruction})")
        return before.instruction, False

    async def _take(self, work: Work, key: str | None) -> int:
        await self._residency.check_accepting()
        self._agenda.check_room()
        number, self._next = self._next, self._next + 1
        instruction = Instruction(number, work, asyncio.get_running_loop().create_future())
        self._agenda.put(instruction)
        try:
            event = Accepted(
                instruction=number,
                code=work.code,
                timeout_seconds=work.timeout_seconds,
                key=key,
                env=dict(work.env),
                functions=list(work.functions),
            )
            await self._dossier.write(set={"next_instruction": number + 1}, events=[event], step="accept", patient=False)
        except BaseException as e:
            self._agenda.withdraw(instruction)
            if isinstance(e, KeyReused) and self._next == number + 1:
                self._next = number  # surely not on the tape, and nobody has come after it
            raise
        if self._agenda.closed:
            raise Uncertain(f"instruction {number} was accepted while its keeper went; the tape says what becomes of it", position=None)
        self._agenda.confirm(instruction)
        return number
