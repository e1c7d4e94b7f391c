"""What every Store does. Subclass it and give it a `store` fixture."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from everforge.store.base import Change, KeyRecord, MachineQuery, MachineRecord, PointRecord, Store
from everforge.store.tape import INSTRUCTIONS_BYTES_MAX, RUNTIME_MS_MAX
from everforge.wire.errors import InvalidInput, KeyReused, MachineNotFound, NameTaken, WrongState
from everforge.wire.events import START, Accepted, Answered, Called, Displayed, Ended, Event, Lost, Moved, Output, Position
from everforge.wire.ids import AccountId, MachineName, SnapshotId, new_machine_id, new_snapshot_id

A = AccountId("a")


def machine(name: str = "one", **values: Any) -> MachineRecord:
    defaults: dict[str, Any] = {
        "id": new_machine_id(),
        "name": MachineName(name),
        "account": A,
        "created_at": 1.0,
        "last_used_at": 1.0,
        "residence": "awake",
        "engine": "fake",
        "image": "sha256:1",
        "memory_mb": 512,
        "cpus": 1.5,
        "disk_mb": 1024,
        "processes": 64,
        "idle_seconds": 300.0,
    }
    return MachineRecord(**(defaults | values))


def key_of(key: str, *made: MachineRecord) -> KeyRecord:
    return KeyRecord(account=A, route="create", key=key, request="hash", made=tuple(of.id for of in made), created_at=5.0)


def point(of: MachineRecord, position: int, **values: Any) -> PointRecord:
    defaults: dict[str, Any] = {"snapshot": new_snapshot_id(), "machine": of.id, "position": Position(position), "instruction": None}
    defaults |= {"created_at": 1.0, "reason": "idle"}
    return PointRecord(**(defaults | values))


def accepted(instruction: int, **values: Any) -> Accepted:
    return Accepted(instruction=instruction, code=f"print({instruction})", timeout_seconds=15.0, **values)


def output(instruction: int | None, *lines: str, first_seq: int = 0, **values: Any) -> Output:
    return Output(instruction=instruction, stream="stdout", first_seq=first_seq, lines=list(lines), **values)


def ended(instruction: int, **values: Any) -> Ended:
    return Ended(instruction=instruction, end="value", **values)


async def append(store: Store, of: MachineRecord, *events: Event) -> list[Event]:
    return list(await store.commit(Change(machine=of.id, events=events)))


async def tape(store: Store, of: MachineRecord, after: int = START, limit: int = 1000) -> list[Event]:
    return list(await store.events(of.id, Position(after), limit))


class StoreSuite:
    # --- machines ------------------------------------------------------------------------------------------------------------------

    async def test_machines_created_together_are_all_there_or_none(self, store: Store) -> None:
        await store.create(machine("taken"))
        together = [machine(name) for name in ("first", "taken", "last")]
        with pytest.raises(NameTaken):
            await store.create_together([(of, [], point(of, 0)) for of in together])
        assert await store.find(A, MachineName("first")) is None
        first, _, last = together
        await store.create_together([(of, [], point(of, 0)) for of in (first, last)])
        assert [len(await store.points(of.id)) for of in (first, last)] == [1, 1]

    async def test_a_record_comes_back_as_it_was(self, store: Store) -> None:
        record = machine(
            tags={"k": "v", "ü": "\x00"},
            metadata={"deep": [{"a": None}], "lone": "\ud800"},
            env={"PATH": "/bin"},
            head=new_snapshot_id(),
            epoch=7,
            next_instruction=3,
            error="why",
            notice="what",
            failed_wakes=2,
        )
        await store.create(record)
        assert await store.machine(record.id) == record
        assert await store.find(A, record.name) == record

    async def test_an_unknown_machine_is_none_or_an_error_and_never_empty_by_mistake(self, store: Store) -> None:
        nobody = new_machine_id()
        assert await store.machine(nobody) is None
        assert await store.find(A, MachineName("nobody")) is None
        for call in (store.commit(Change(machine=nobody)), store.events(nobody, START, 1), store.end_position(nobody)):
            with pytest.raises(MachineNotFound):
                await call

    async def test_a_name_is_taken_until_its_machine_is_deleted(self, store: Store) -> None:
        first = machine("n")
        await store.create(first)
        with pytest.raises(NameTaken):
            await store.create(machine("n"))
        await store.commit(Change(machine=first.id, set={"deleted_at": 2.0, "residence": "deleted"}))
        second = machine("n")
        await store.create(second)
        assert await store.find(A, MachineName("n")) == second
        gone = await store.machine(first.id)
        assert gone is not None
        assert gone.deleted_at == 2.0

    async def test_a_name_is_taken_in_its_own_account_alone(self, store: Store) -> None:
        mine, yours = machine("n"), machine("n", account=AccountId("b"))
        await store.create(mine)
        await store.create(yours)
        assert [await store.find(A, MachineName("n")), await store.find(AccountId("b"), MachineName("n"))] == [mine, yours]
        assert await store.find(AccountId("c"), MachineName("n")) is None
        with pytest.raises(NameTaken):
            await store.create(machine("n", account=AccountId("b")))

    async def test_a_name_can_change_but_not_to_one_that_is_taken(self, store: Store) -> None:
        one, two = machine("one"), machine("two")
        await store.create(one)
        await store.create(two)
        with pytest.raises(NameTaken):
            await store.commit(Change(machine=two.id, set={"name": "one"}, events=[accepted(0)]))
        assert await tape(store, two) == []
        await store.commit(Change(machine=two.id, set={"name": "three"}))
        assert await store.find(A, MachineName("two")) is None
        assert await store.find(A, MachineName("three")) == replace(two, name=MachineName("three"))

    async def test_fields_change_together_with_events_and_points(self, store: Store) -> None:
        record = machine()
        await store.create(record)
        new = point(record, 0)
        fields = {"residence": "asleep", "head": new.snapshot, "metadata": {"x": 1}, "tags": {"t": "u"}, "next_instruction": 9}
        (moved,) = await store.commit(
            Change(machine=record.id, set=fields, events=[Moved(event="sleep", residence="asleep")], add_points=[new], durable=True)
        )
        assert await store.machine(record.id) == replace(record, **fields)
        assert await tape(store, record) == [moved]
        assert await store.points(record.id) == [new]

    @pytest.mark.parametrize("name", ["id", "account", "created_at", "source", "source_position", "nonsense", "position_floor", "x = 1; --"])
    async def test_what_a_machine_is_for_good_cannot_be_set(self, store: Store, name: str) -> None:
        record = machine()
        await store.create(record)
        with pytest.raises(InvalidInput):
            await store.commit(Change(machine=record.id, set={name: "x"}, events=[accepted(0)]))
        assert await store.machine(record.id) == record
        assert await tape(store, record) == []

    # --- lists ---------------------------------------------------------------------------------------------------------------------

    async def test_lists_are_newest_first_and_pages_join_without_gap_or_double(self, store: Store) -> None:
        records = [machine(f"m{i}", created_at=float(i // 3)) for i in range(20)]
        for record in records:
            await store.create(record)
        seen: list[MachineRecord] = []
        before = None
        while page := await store.machines(MachineQuery(before=before, limit=3)):
            seen += page
            before = (page[-1].created_at, page[-1].id)
            if len(seen) == 9:  # others come and go meanwhile: pages not yet read are not moved by it
                await store.create(machine("late", created_at=100.0))
                await store.commit(Change(machine=seen[0].id, set={"deleted_at": 5.0}))
        assert seen == sorted(records, key=lambda r: (r.created_at, r.id), reverse=True)

    async def test_lists_are_narrowed_by_all_that_is_asked(self, store: Store) -> None:
        web = machine("web-1", tags={"env": "prod", "team": "x"}, created_at=1.0)
        web2 = machine("web-2", tags={"env": "test", "team": "x"}, created_at=2.0, residence="asleep")
        other = machine("db-1", tags={"env": "prod", "team": "x"}, created_at=3.0, account=AccountId("b"))
        gone = machine("web-3", tags={"env": "prod", "team": "x"}, created_at=4.0, residence="deleted", deleted_at=5.0)
        for record in (web, web2, other, gone):
            await store.create(record)

        async def names(**query: Any) -> list[str]:
            return [m.name for m in await store.machines(MachineQuery(**query))]

        assert await names() == ["db-1", "web-2", "web-1"]
        assert await names(name_prefix="web") == ["web-2", "web-1"]
        assert await names(tags={"env": "prod"}) == ["db-1", "web-1"]
        assert await names(tags={"env": "prod", "team": "x"}, account=AccountId("a")) == ["web-1"]
        assert await names(tags={"env": "prod", "team": "y"}) == []
        assert await names(residences=frozenset({"asleep", "awake"})) == ["db-1", "web-2", "web-1"]
        assert await names(residences=frozenset({"asleep"})) == ["web-2"]
        assert await names(residences=frozenset({"deleted"})) == ["web-3"]
        assert await names(tags={"env": "prod"}, limit=1) == ["db-1"]
        assert await names(tags={"env": "prod"}, before=(3.0, other.id)) == ["web-1"]
        assert await names(name_prefix="web-%") == []

    async def test_tags_found_are_the_tags_set_last(self, store: Store) -> None:
        record = machine(tags={"a": "1"})
        await store.create(record)
        await store.commit(Change(machine=record.id, set={"tags": {"b": "2"}}))
        assert await store.machines(MachineQuery(tags={"a": "1"})) == []
        assert [m.id for m in await store.machines(MachineQuery(tags={"b": "2"}))] == [record.id]

    @pytest.mark.parametrize("limit", [0, -1])
    async def test_a_limit_below_one_is_refused(self, store: Store, limit: int) -> None:
        record = machine()
        await store.create(record)
        with pytest.raises(InvalidInput):
            await store.machines(MachineQuery(limit=limit))
        with pytest.raises(InvalidInput):
            await store.events(record.id, START, limit)

    async def test_machines_are_told_as_they_expire(self, store: Store) -> None:
        late, soon, never, gone = (
            machine("late", expires_at=30.0),
            machine("soon", expires_at=10.0),
            machine("never"),
            machine("gone", expires_at=5.0),
        )
        for record in (late, soon, never, gone):
            await store.create(record)
        await store.commit(Change(machine=gone.id, set={"deleted_at": 2.0, "residence": "deleted"}))
        assert await store.expiring(30.0, 10) == [soon]
        assert await store.expiring(31.0, 10) == [soon, late]
        assert await store.expiring(31.0, 1) == [soon]
        await store.commit(Change(machine=soon.id, set={"expires_at": None}))
        assert await store.expiring(31.0, 10) == [late]

    # --- keys ----------------------------------------------------------------------------------------------------------------------

    async def test_a_key_is_written_with_what_it_made_or_not_at_all(self, store: Store) -> None:
        one, two = machine("one"), machine("two")
        await store.create(one, key=key_of("k", one))
        assert await store.made_with_key(A, "create", "k") == key_of("k", one)
        with pytest.raises(KeyReused):
            await store.create(two, key=key_of("k", two))
        assert await store.machine(two.id) is None
        with pytest.raises(NameTaken):
            await store.create(machine("one"), key=key_of("other"))
        assert await store.made_with_key(A, "create", "other") is None
        assert await store.made_with_key(A, "fork", "k") is None
        assert await store.made_with_key(AccountId("b"), "create", "k") is None

    async def test_a_key_of_several_machines_is_pruned_by_its_age(self, store: Store) -> None:
        together = [machine(name) for name in ("one", "two")]
        key = key_of("k", *together)
        await store.create_together([(of, [], point(of, 0)) for of in together], key)
        await store.prune_keys(5.0)
        assert await store.made_with_key(A, "create", "k") == key
        again = machine("three")
        with pytest.raises(KeyReused):
            await store.create_together([(again, [], point(again, 0))], key)
        await store.prune_keys(5.1)
        assert await store.made_with_key(A, "create", "k") is None

    # --- sums ----------------------------------------------------------------------------------------------------------------------

    async def test_usage_is_counted_by_account_and_outlives_machines(self, store: Store) -> None:
        mine, other = machine("one"), machine("one", account=AccountId("b"))
        first = point(mine, 0, size_bytes=100)
        await store.create(mine, points=[first])
        await store.create(other, points=[point(other, 0, size_bytes=7)])
        await append(store, mine, accepted(0), accepted(1), ended(0, runtime_ms=20))
        await append(store, other, accepted(0))
        await append(store, mine, ended(1, runtime_ms=10**30))
        await store.commit(Change(machine=mine.id, add_points=[point(mine, 1, size_bytes=50), replace(first, size_bytes=60)]))
        usage = await store.usage(A)
        assert (usage.instructions, usage.runtime_ms, usage.disk_bytes) == (2, 20 + RUNTIME_MS_MAX, 110)
        assert usage.residences == {"awake": 1}
        gone = {"deleted_at": 2.0, "residence": "deleted"}
        await store.commit(Change(machine=mine.id, set=gone, drop_points=[p.snapshot for p in await store.points(mine.id)]))
        await store.purge(mine.id)
        usage = await store.usage(A)
        assert (usage.instructions, usage.runtime_ms, usage.disk_bytes, usage.residences) == (2, 20 + RUNTIME_MS_MAX, 0, {})
        nobody = await store.usage(AccountId("nobody"))
        assert (nobody.instructions, nobody.runtime_ms, nobody.disk_bytes, nobody.residences) == (0, 0, 0, {})

    async def test_what_was_refused_is_not_counted(self, store: Store) -> None:
        mine = machine()
        await store.create(mine)
        changes = [[accepted(0)], [accepted(0)], [accepted(1), ended(1, runtime_ms=5), ended(1, runtime_ms=5)]]
        results = await asyncio.gather(*(append(store, mine, *events) for events in changes), return_exceptions=True)
        assert [isinstance(result, WrongState) for result in results] == [False, True, True]
        usage = await store.usage(A)
        assert (usage.instructions, usage.runtime_ms) == (1, 0)

    async def test_machines_are_counted_by_residence(self, store: Store) -> None:
        for name, residence in (("a", "awake"), ("b", "asleep"), ("c", "asleep")):
            await store.create(machine(name, residence=residence))
        await store.create(machine("d", residence="deleted", deleted_at=1.0))
        assert await store.counts() == {"awake": 1, "asleep": 2}

    # --- tapes ---------------------------------------------------------------------------------------------------------------------

    async def test_every_kind_of_entry_comes_back_as_it_was(self, store: Store) -> None:
        record = machine()
        first = await store.create(record, [Moved(event="started", residence="awake", detail={"a": [1]}, time=5.0)])
        rest = await append(
            store,
            record,
            accepted(0, key="k", time=1.5),
            output(0, "a", "", "\ud800\x00", epoch=2, frame=3),
            Displayed(instruction=0, data={"text/html": "<b>"}, metadata={"m": 1.5}, epoch=2, frame=4),
            ended(0, value="1", data={"text/plain": "1"}, note="n", runtime_ms=7, epoch=2, frame=5),
            Lost(since_position=Position(1), first_instruction=0, last_instruction=0, snapshot=None, reason="power"),
        )
        assert [event.position for event in [*first, *rest]] == [0, 1, 2, 5, 6, 7]
        assert await tape(store, record) == [*first, *rest]
        assert await store.end_position(record.id) == 7

    async def test_an_empty_tape_ends_at_start(self, store: Store) -> None:
        record = machine()
        await store.create(record)
        assert await store.end_position(record.id) == START
        assert await tape(store, record) == []

    async def test_reading_from_inside_an_output_gives_the_rest_of_it(self, store: Store) -> None:
        record = machine()
        await store.create(record)
        await append(store, record, accepted(0), output(0, "a", "b", "c"), ended(0))
        for after, lines, first_seq in ((0, ["a", "b", "c"], 0), (1, ["b", "c"], 1), (2, ["c"], 2)):
            rest, end = await tape(store, record, after)
            assert isinstance(rest, Output)
            assert (rest.position, rest.lines, rest.first_seq) == (after + 1, lines, first_seq)
            assert isinstance(end, Ended)
        assert [e.kind for e in await tape(store, record, 3)] == ["ended"]
        assert await tape(store, record, 4) == []
        assert await tape(store, record, 10**12) == []

    async def test_a_limit_counts_entries_also_when_reading_begins_inside_one(self, store: Store) -> None:
        record = machine()
        await store.create(record)
        all = await append(store, record, output(None, "a", "b"), *(Moved(event=str(i), residence="awake") for i in range(5)))
        assert await tape(store, record, limit=3) == all[:3]
        assert await tape(store, record, after=1, limit=3) == all[1:4]
        assert len(await tape(store, record, after=0, limit=3)) == 3

    async def test_an_output_without_lines_is_refused_and_nothing_else_of_its_change_happens(self, store: Store) -> None:
        record = machine()
        await store.create(record)
        with pytest.raises(InvalidInput):
            await store.commit(Change(machine=record.id, set={"residence": "asleep"}, events=[accepted(0), output(0)]))
        assert await store.machine(record.id) == record
        assert await tape(store, record) == []
        assert [e.position for e in await append(store, record, accepted(0))] == [0]

    async def test_writes_at_once_get_positions_in_the_order_of_the_calls(self, store: Store) -> None:
        record = machine()
        await store.create(record)
        writes = [asyncio.ensure_future(append(store, record, output(None, "a", "b", first_seq=2 * i))) for i in range(50)]
        written = [event for write in writes for event in await write]
        assert [event.position for event in written] == list(range(0, 100, 2))
        assert await tape(store, record) == written

    async def test_only_the_guilty_of_many_writes_at_once_fail(self, store: Store) -> None:
        record = machine()
        await store.create(record)
        changes = [Change(machine=record.id if i % 5 else new_machine_id(), events=[accepted(i)]) for i in range(40)]
        results = await asyncio.gather(*(store.commit(change) for change in changes), return_exceptions=True)
        assert [isinstance(result, MachineNotFound) for result in results] == [i % 5 == 0 for i in range(40)]
        assert [event.position for event in await tape(store, record)] == list(range(32))

    # --- instructions --------------------------------------------------------------------------------------------------------------

    async def test_an_instruction_is_found_with_its_end(self, store: Store) -> None:
        record = machine()
        await store.create(record)
        a0, a1, e0 = await append(store, record, accepted(0), accepted(1, key="k"), ended(0))
        assert await store.instruction(record.id, 0) == (a0, e0)
        assert await store.instruction(record.id, 1) == (a1, None)
        assert await store.instruction(record.id, 2) is None
        assert await store.instruction(new_machine_id(), 0) is None
        assert await store.unended(record.id) == [a1]
        assert await store.accepted_with_key(record.id, "k") == a1
        assert await store.accepted_with_key(record.id, "other") is None

    async def test_a_key_is_taken_once_and_those_who_write_beside_it_do_not_notice(self, store: Store) -> None:
        record, other = machine(), machine("other")
        for each in (record, other):
            await store.create(each)
        changes = [Change(machine=record.id, events=[accepted(i, key="k")], set={"next_instruction": i + 1}) for i in range(3)]
        changes += [Change(machine=other.id, events=[accepted(i, key=None if i else "k")]) for i in range(3)]
        results = await asyncio.gather(*(store.commit(change) for change in changes), return_exceptions=True)
        assert [isinstance(result, KeyReused) for result in results] == [False, True, True, False, False, False]
        assert [event.position for event in await tape(store, record)] == [0]
        assert [event.position for event in await tape(store, other)] == [0, 1, 2]
        kept = await store.machine(record.id)
        assert kept is not None
        assert kept.next_instruction == 1

    async def test_instructions_are_listed_in_their_order_a_page_at_a_time(self, store: Store) -> None:
        record = machine()
        await store.create(record)
        a0, e0, a1, a7 = await append(store, record, accepted(0), ended(0), accepted(1), accepted(7))
        assert await store.instructions(record.id, -1, 2) == ([(a0, e0), (a1, None)], True)
        assert await store.instructions(record.id, -1, 3) == ([(a0, e0), (a1, None), (a7, None)], False)
        assert await store.instructions(record.id, 1, 2) == ([(a7, None)], False)
        assert await store.instructions(record.id, 7, 2) == await store.instructions(new_machine_id(), -1, 2) == ([], False)

    async def test_a_page_of_large_instructions_ends_behind_the_one_that_goes_over_its_size(self, store: Store) -> None:
        record = machine()
        await store.create(record)
        large = "x" * (INSTRUCTIONS_BYTES_MAX * 2 // 3)
        for number in range(5):
            await append(store, record, accepted(number), ended(number, value=large))
        pages: list[list[int]] = []
        after, more = -1, True
        while more:
            found, more = await store.instructions(record.id, after, 100)
            numbers = [event.instruction for event, _ in found if isinstance(event, Accepted)]
            pages.append(numbers)
            after = numbers[-1]
        assert pages == [[0, 1], [2, 3], [4]]
        await append(store, record, accepted(5), ended(5, value=2 * large))
        found, more = await store.instructions(record.id, 4, 100)
        assert (len(found), more) == (1, False)  # one at least

    async def test_what_an_instruction_displayed_is_found(self, store: Store) -> None:
        record = machine()
        await store.create(record)
        shown = [Displayed(instruction=n, data={"text/plain": text}) for n, text in ((0, "a"), (1, "b"), (0, "c"))]
        a, _, c = (await append(store, record, accepted(0), accepted(1), *shown))[2:]
        assert await store.displayed(record.id, 0) == [a, c]
        assert await store.displayed(record.id, 2) == []

    async def test_calls_of_an_instruction_are_found_with_the_positions_of_their_answers(self, store: Store) -> None:
        record = machine()
        await store.create(record)
        calls = [Called(instruction=n, call=c, function="ask", args=[{"call": 9}]) for n, c in ((0, 0), (0, 3), (1, 0))]
        answers = [Answered(instruction=0, call=0, value={"call": 7}), Answered(instruction=1, call=0, error="no")]
        *_, answer, other = await append(store, record, accepted(0), accepted(1), *calls, *answers)
        assert await store.calls(record.id, 0) == {0: answer.position, 3: None}
        assert await store.calls(record.id, 1) == {0: other.position}
        assert await store.calls(record.id, 2) == await store.calls(new_machine_id(), 0) == {}
        assert await store.events(record.id, Position(answer.position - 1), 1) == [answer]

    async def test_machines_with_something_unended_are_told_the_deleted_aside(self, store: Store) -> None:
        records = [machine(f"m{i}") for i in range(4)]
        for record in records:
            await store.create(record)
        await append(store, records[0], accepted(0), accepted(1), ended(0))
        await append(store, records[1], accepted(0), ended(0))
        await append(store, records[2], accepted(0))
        await store.commit(Change(machine=records[2].id, set={"deleted_at": 1.0}))
        assert await store.machines_with_unended() == [records[0].id]

    async def test_an_instruction_is_accepted_once_and_ends_once(self, store: Store) -> None:
        record = machine()
        await store.create(record)
        await append(store, record, accepted(0))
        with pytest.raises(WrongState):
            await append(store, record, accepted(0))
        await append(store, record, ended(0))
        with pytest.raises(WrongState):
            await append(store, record, Moved(event="x", residence="awake"), ended(0))
        assert [e.kind for e in await tape(store, record)] == ["accepted", "ended"]

    async def test_output_lines_are_counted_by_instruction(self, store: Store) -> None:
        record = machine()
        await store.create(record)
        assert await store.outputs(record.id, 0) == 0
        await append(store, record, output(None, "x"), accepted(0), output(0, "a", "b"), output(0, "c", first_seq=2), accepted(1))
        assert await store.outputs(record.id, 0) == 3
        assert await store.outputs(record.id, 1) == 0
        assert await store.outputs(record.id, None) == 1

    async def test_the_last_frame_received_is_told_by_epoch(self, store: Store) -> None:
        record = machine()
        await store.create(record)
        await append(store, record, output(None, "a", epoch=1, frame=4), output(None, "b", first_seq=1, epoch=2, frame=1), accepted(0))
        assert await store.received(record.id, 1) == 4
        assert await store.received(record.id, 2) == 1
        assert await store.received(record.id, 3) == 0
        assert await store.received(record.id, 0) == 0

    # --- forks ---------------------------------------------------------------------------------------------------------------------

    async def test_a_forks_tape_begins_as_its_sources(self, store: Store) -> None:
        source = machine("source")
        await store.create(source)
        shared = await append(store, source, accepted(0, key="k"), output(0, "a", "b"), ended(0), accepted(1))
        fork = machine("fork", source=source.id, source_position=shared[-1].position, next_instruction=2)
        born = list(await store.create(fork, [Moved(event="forked", residence="awake")]))
        assert born[0].position == shared[-1].position + 1
        await append(store, source, ended(1), accepted(2), output(2, "source"), ended(2))
        own = await append(store, fork, accepted(2), output(2, "fork"), ended(2))

        assert await tape(store, fork) == [*shared, *born, *own]
        assert await tape(store, fork, after=shared[1].position, limit=3) == [replace_output(shared[1], 1), shared[2], shared[3]]
        assert await tape(store, fork, after=born[0].position) == own
        assert await store.instruction(fork.id, 0) == (shared[0], shared[2])
        assert await store.instruction(fork.id, 1) == (shared[3], None)
        found = await store.instruction(fork.id, 2)
        assert found == (own[0], own[2])
        assert await store.outputs(fork.id, 0) == 2
        assert await store.unended(fork.id) == []
        assert await store.accepted_with_key(fork.id, "k") is None

    async def test_a_fork_of_a_fork_walks_all_the_way_back(self, store: Store) -> None:
        first = machine("first")
        await store.create(first)
        (a,) = await append(store, first, output(None, *"abcdef"))
        second = machine("second", source=first.id, source_position=Position(3))  # in the middle of the output
        await store.create(second)
        (b,) = await append(store, second, output(None, "x", "y", first_seq=4))
        third = machine("third", source=second.id, source_position=Position(4))
        await store.create(third)
        early = machine("early", source=third.id, source_position=Position(1))  # before even the second began
        await store.create(early)
        (c,) = await append(store, third, Moved(event="c", residence="awake"))

        assert lines(await tape(store, second)) == ["a", "b", "c", "d", "x", "y"]
        assert lines(await tape(store, third)) == ["a", "b", "c", "d", "x"]
        assert lines(await tape(store, early)) == ["a", "b"]
        assert lines(await tape(store, third, after=2, limit=2)) == ["d", "x"]
        assert (b.position, c.position) == (4, 5)
        assert await store.end_position(early.id) == 1
        assert await store.outputs(third.id, None) == 5
        assert await store.outputs(early.id, None) == 2
        assert a.position == 0

    async def test_a_fork_of_nobody_is_refused(self, store: Store) -> None:
        with pytest.raises(MachineNotFound):
            await store.create(machine(source=new_machine_id(), source_position=Position(0)))

    # --- deleting ------------------------------------------------------------------------------------------------------------------

    async def test_a_purged_machine_is_forgotten(self, store: Store) -> None:
        record = machine(tags={"a": "b"})
        await store.create(record, points=[point(record, 0)])
        await append(store, record, *(Moved(event=str(i), residence="awake") for i in range(1200)))
        with pytest.raises(WrongState):
            await store.purge(record.id)
        await store.commit(Change(machine=record.id, set={"deleted_at": 9.0}))
        assert len(await tape(store, record, limit=2000)) == 1200
        await store.purge(record.id)
        await store.purge(record.id)
        assert await store.machine(record.id) is None
        assert await store.points(record.id) == []
        with pytest.raises(MachineNotFound):
            await tape(store, record)
        with pytest.raises(MachineNotFound):
            await append(store, record, accepted(0))

    async def test_a_purged_sources_tape_stays_for_its_forks_and_goes_with_the_last(self, store: Store) -> None:
        source, fork = machine("source"), machine("fork")
        await store.create(source)
        shared = await append(store, source, accepted(0), ended(0))
        fork = replace(fork, source=source.id, source_position=Position(1))
        await store.create(fork)
        await store.commit(Change(machine=source.id, set={"deleted_at": 1.0}))
        await store.purge(source.id)
        assert await store.machine(source.id) is None
        assert await tape(store, fork) == shared
        with pytest.raises(MachineNotFound):
            await store.create(machine("late", source=source.id, source_position=Position(1)))
        await store.commit(Change(machine=fork.id, set={"deleted_at": 2.0}))
        await store.purge(fork.id)
        with pytest.raises(MachineNotFound):
            await tape(store, fork)

    async def test_old_deleted_machines_are_purged_by_time(self, store: Store) -> None:
        records = [machine(f"m{i}") for i in range(4)]
        for i, record in enumerate(records):
            await store.create(record)
            if i:
                await store.commit(Change(machine=record.id, set={"deleted_at": float(i)}))
        assert await store.purge_deleted(3.0) == 2
        assert [await store.machine(r.id) is None for r in records] == [False, True, True, False]
        assert await store.purge_deleted(3.0) == 0

    # --- points --------------------------------------------------------------------------------------------------------------------

    async def test_points_are_oldest_first_replaced_and_dropped(self, store: Store) -> None:
        record = machine()
        template, late, early = point(record, -1, reason="template"), point(record, 9, name="n", size_bytes=5), point(record, 4, instruction=2)
        await store.create(record, points=[template])
        await store.commit(Change(machine=record.id, add_points=[late, early]))
        assert await store.points(record.id) == [template, early, late]
        renamed = replace(early, name="kept")
        await store.commit(Change(machine=record.id, add_points=[renamed], drop_points=[late.snapshot, SnapshotId("unknown")]))
        assert await store.points(record.id) == [template, renamed]

    async def test_a_point_of_another_machine_is_refused(self, store: Store) -> None:
        record = machine()
        await store.create(record)
        with pytest.raises(InvalidInput):
            await store.commit(Change(machine=record.id, add_points=[point(machine(), 0)]))

    async def test_images_are_in_use_by_the_undeleted(self, store: Store) -> None:
        assert await store.images_in_use() == frozenset()
        one, two, three = machine("one", image="a" * 64), machine("two", image="b" * 64), machine("three", image="a" * 64)
        for record in (one, two, three):
            await store.create(record)
        assert await store.images_in_use() == {"a" * 64, "b" * 64}
        await store.commit(Change(machine=two.id, set={"deleted_at": 1.0}))
        await store.commit(Change(machine=three.id, set={"deleted_at": 1.0}))
        assert await store.images_in_use() == {"a" * 64}

    async def test_snapshots_are_referenced_by_heads_and_points_of_the_undeleted(self, store: Store) -> None:
        shared, head = new_snapshot_id(), new_snapshot_id()
        one, two = machine("one", head=head), machine("two")
        of_one, of_two = point(one, 0, snapshot=shared), point(two, 0, snapshot=shared)
        own = point(two, 1)
        await store.create(one, points=[of_one])
        await store.create(two, points=[of_two, own])
        assert await store.referenced_snapshots() == {shared, head, own.snapshot}
        await store.commit(Change(machine=two.id, set={"deleted_at": 1.0}))
        assert await store.referenced_snapshots() == {shared, head}
        used = {s: await store.snapshot_in_use(s) for s in (shared, head, own.snapshot, new_snapshot_id())}
        assert [used[s] for s in (shared, head, own.snapshot)] == [True, True, False]
        assert list(used.values())[3] is False
        assert [await store.is_head(s) for s in (head, own.snapshot, new_snapshot_id())] == [True, False, False]

    async def test_the_first_boot_is_clean(self, store: Store) -> None:
        assert not await store.unclean_boot()


def replace_output(event: Event, skip: int) -> Event:
    assert isinstance(event, Output)
    return event.after(Position(event.position + skip - 1))


def lines(events: list[Event]) -> list[str]:
    return [line for event in events if isinstance(event, Output) for line in event.lines]
