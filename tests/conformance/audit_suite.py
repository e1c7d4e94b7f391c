"""What every audit log does. Subclass it and give it a `store` fixture."""

from __future__ import annotations

import asyncio
from typing import Any

from everforge.store.audit import AuditQuery
from everforge.store.base import Store
from everforge.wire.audit import GENESIS, PRUNED, Chain, Seen, moment, plain

EVERYTHING = 10**15  # bytes


def seen(action: str = "machine.create", at: float = 100.0, **values: Any) -> Seen:
    return Seen(time=moment(at), action=action, **values)


async def check(store: Store) -> int:
    """How many entries there are, in a chain that is whole."""
    chain = Chain()
    for entry in await store.audit.entries(AuditQuery(limit=10_000)):
        chain.add(plain(entry))
    chain.end(await store.audit.head())
    return chain.count


class AuditSuite:
    async def test_entries_make_one_chain_from_the_first(self, store: Store) -> None:
        assert (await store.audit.head()).number == 0
        await store.audit.append([seen(detail={"b": 1, "a": ["é", None]}), seen("machine.exec", account="a", token="t", address="::1", request="r")])
        await store.audit.append([seen("machine.delete", outcome="MachineNotFound", machine="one", account_name="ada")])
        first, second, third = await store.audit.entries(AuditQuery())
        assert (first.number, first.previous, second.previous, third.previous) == (1, GENESIS, first.hash, second.hash)
        assert (first.detail, second.address, third.outcome, third.account_name) == ({"b": 1, "a": ["é", None]}, "::1", "MachineNotFound", "ada")
        assert (await store.audit.head()).hash == third.hash
        assert await check(store) == 3

    async def test_those_who_write_at_once_do_not_tear_the_chain(self, store: Store) -> None:
        await asyncio.gather(*(store.audit.append([seen(detail={"who": n}), seen(detail={"who": n})]) for n in range(50)))
        assert await check(store) == 100

    async def test_entries_are_found_by_what_they_are_about(self, store: Store) -> None:
        await store.audit.append([seen("machine.create", 100.0, account="a", machine="one"), seen("machine.exec", 200.0, account="b", machine="one")])
        await store.audit.append([seen("machines", 300.0, account="a"), seen("token.create", 400.0, account="a")])

        async def numbers(**query: Any) -> list[int]:
            return [entry.number for entry in await store.audit.entries(AuditQuery(**query))]

        assert await numbers(account="a") == [1, 3, 4]
        assert await numbers(machine="one") == [1, 2]
        assert await numbers(action="machine") == [1, 2]
        assert await numbers(action="machine.exec") == [2]
        assert await numbers(since_ms=200_000) == [2, 3, 4]
        assert await numbers(after=1, limit=2) == [2, 3]
        assert await numbers(last=True, limit=2) == [3, 4]

    async def test_what_is_too_old_goes_and_the_rest_still_verifies(self, store: Store) -> None:
        await store.audit.append([seen(at=float(n)) for n in range(1, 21)])
        assert await store.audit.prune(11_000, EVERYTHING, 500.0) == 10
        kept = await store.audit.entries(AuditQuery())
        assert (kept[0].number, kept[-1].number, kept[-1].action) == (11, 21, PRUNED)
        assert await check(store) == 11
        assert await store.audit.prune(11_000, EVERYTHING, 501.0) == 0
        await store.audit.append([seen(at=600.0)])
        assert await store.audit.prune(400_000, EVERYTHING, 700.0) == 10
        assert [entry.number for entry in await store.audit.entries(AuditQuery())] == [21, 22, 23]
        assert await check(store) == 3

    async def test_an_entry_whose_clock_was_wrong_takes_no_others_with_it(self, store: Store) -> None:
        await store.audit.append([seen(at=float(at)) for at in (1, 500, 501, 2, 502)])
        assert await store.audit.prune(400_000, EVERYTHING, 600.0) == 1
        assert [entry.number for entry in await store.audit.entries(AuditQuery())] == [2, 3, 4, 5, 6]
        assert await check(store) == 5

    async def test_what_takes_too_many_bytes_goes_the_oldest_first(self, store: Store) -> None:
        await store.audit.append([seen(detail={"text": "x" * 600}) for _ in range(20)])
        assert await store.audit.prune(0, 10_500, 500.0) == 11
        assert await check(store) == 10

    async def test_every_text_of_an_entry_counts_as_bytes(self, store: Store) -> None:
        text = "é" * 300
        for one in (seen(account_name=text), seen(machine=text), seen(address=text)):
            await store.audit.append([one] * 10)
        assert await store.audit.prune(0, 30_100, 500.0) == 0
        assert await store.audit.prune(0, 20_000, 501.0) == 13

    async def test_a_log_that_was_let_go_entirely_goes_on_where_it_was(self, store: Store) -> None:
        await store.audit.append([seen(), seen()])
        assert await store.audit.prune(10**12, EVERYTHING, 500.0) == 2
        assert [(entry.number, entry.action) for entry in await store.audit.entries(AuditQuery())] == [(3, PRUNED)]
        assert await check(store) == 1
