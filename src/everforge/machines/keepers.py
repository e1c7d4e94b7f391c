"""The keepers of one server, found by id or by name. A name is looked up here first: asking the store costs as much as a trivial instruction."""

from __future__ import annotations

from collections.abc import Iterable

from everforge.wire.ids import AccountId, MachineId

from .keeper import Keeper


class Keepers:
    def __init__(self) -> None:
        self._by_id: dict[MachineId, Keeper] = {}
        self._by_name: dict[tuple[AccountId, str], Keeper] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, id: MachineId) -> bool:
        return id in self._by_id

    def add(self, keeper: Keeper) -> None:
        self._by_id[keeper.id] = keeper
        self._by_name[_owned(keeper)] = keeper

    def get(self, id: MachineId) -> Keeper | None:
        return self._by_id.get(id)

    def named(self, account: AccountId, name: object) -> Keeper | None:
        return self._by_name.get((account, name)) if isinstance(name, str) else None

    def remove(self, keeper: Keeper) -> None:
        """If it is still the one: another may have taken its place."""
        if self._by_id.get(keeper.id) is keeper:
            del self._by_id[keeper.id]
        name = _owned(keeper)
        if self._by_name.get(name) is keeper:
            del self._by_name[name]

    def all(self) -> Iterable[Keeper]:
        return list(self._by_id.values())


def _owned(keeper: Keeper) -> tuple[AccountId, str]:
    return keeper.dossier.record.account, keeper.dossier.record.name
