"""Who is let in, against a model: random walks of everything that changes it, on both stores, through restarts and a clock that moves."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everforge.accounts.identity import SCOPES, Identity
from everforge.accounts.service import Accounts
from everforge.accounts.settings import AccountSettings
from everforge.store.base import Store
from everforge.store.memory import MemoryStore
from everforge.store.sql.store import SqlStore
from everforge.wire.errors import AccountNotFound, Forbidden, TokenNotFound, Unauthenticated
from kit.length import length

NAMES = ("ann", "bob")
WORDS = st.sets(st.sampled_from(sorted(SCOPES)), min_size=1)
NUMBER = st.integers(0, 30)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create account"), st.sampled_from(NAMES)),
        st.tuples(st.just("delete account"), st.sampled_from(NAMES)),
        st.tuples(st.just("new token"), NUMBER, WORDS, st.one_of(st.none(), st.integers(1, 20))),
        st.tuples(st.just("revoke"), NUMBER, NUMBER),
        st.tuples(st.just("forge"), NUMBER, st.integers(0, 52)),
        st.tuples(st.just("wait"), st.integers(1, 10)),
        st.tuples(st.just("restart")),
    ),
    min_size=5,
    max_size=40,
)


@dataclass
class Expected:
    account: str
    id: str
    scopes: frozenset[str]
    expires_at: float | None
    good: bool = True


class Walk:
    def __init__(self, store: Store, folder: Path) -> None:
        self.store = store
        self.folder = folder
        self.now = 1000.0
        self.tokens: dict[str, Expected] = {}
        self.accounts: Accounts

    async def start(self) -> None:
        # Fewer are remembered than there are: what is forgotten must come out the same.
        few = AccountSettings(cached_tokens_max=3, tokens_max=1000)
        self.accounts = Accounts(self.store.accounts, self.folder, few, clock=lambda: self.now)
        await self.accounts.start()
        self.owner_token = (self.folder / "owner.token").read_text().strip()
        if self.owner_token not in self.tokens:
            self.tokens[self.owner_token] = Expected("owner", self.owner_token.split(".")[0], SCOPES, None)

    def is_good(self, token: str) -> bool:
        expected = self.tokens.get(token)
        return expected is not None and expected.good and (expected.expires_at is None or expected.expires_at > self.now)

    def pick(self, number: int) -> str:
        return list(self.tokens)[number % len(self.tokens)]

    async def identify(self, token: str) -> Identity | None:
        """As the model says, or the test fails."""
        cached = self.accounts.cached(token)
        try:
            identity = await self.accounts.identify(token)
        except Unauthenticated:
            identity = None
        assert cached in (None, identity)
        assert (identity is not None) == self.is_good(token), token
        if identity is not None:
            expected = self.tokens[token]
            assert (identity.account_name, identity.token_id, identity.scopes) == (expected.account, expected.id, expected.scopes)
            assert not self.accounts.watch(identity).is_set()
        return identity

    async def step(self, kind: str, *values: object) -> None:
        match kind, values:
            case "create account", (str(name),):
                owner = await self.accounts.identify(self.owner_token) if self.is_good(self.owner_token) else None
                if owner and not await self.store.accounts.account_named(name):
                    made = await self.accounts.create_account(owner, name)
                    assert made.token
                    self.tokens[made.token] = Expected(name, made.token.split(".")[0], SCOPES, None)
            case "delete account", (str(name),):
                await self.delete(name)
            case "new token", (int(number), set(scopes), seconds):
                await self.new_token(self.pick(number), frozenset(str(s) for s in scopes), seconds if isinstance(seconds, int) else None)
            case "revoke", (int(by), int(number)):
                await self.revoke(self.pick(by), self.pick(number))
            case "forge", (int(number), int(place)):
                token = self.pick(number)
                forged = token[:place] + ("a" if token[place] != "a" else "b") + token[place + 1 :]
                assert await self.identify(forged) is None
            case "wait", (int(seconds),):
                self.now += seconds
            case _:
                await self.accounts.close()
                await self.start()

    async def delete(self, name: str) -> None:
        if not self.is_good(self.owner_token):
            return
        there = any(e.account == name and e.good for e in self.tokens.values()) or await self.store.accounts.account_named(name)
        try:
            await self.accounts.delete_account(await self.accounts.identify(self.owner_token), name)
            assert there
        except AccountNotFound:
            assert not there
        for expected in self.tokens.values():
            if expected.account == name:
                expected.good = False

    async def new_token(self, by: str, scopes: frozenset[str], seconds: int | None) -> None:
        identity = await self.identify(by)
        if identity is None:
            return
        wanted = None if seconds is None else self.now + seconds
        longer = identity.expires_at is not None and wanted is not None and wanted > identity.expires_at
        try:
            made = await self.accounts.new_token(identity, scopes=scopes, expires_at=wanted)
        except Forbidden:
            assert scopes - identity.scopes or longer
            return
        assert not scopes - identity.scopes
        assert not longer
        until = identity.expires_at if wanted is None else wanted
        self.tokens[made.token] = Expected(self.tokens[by].account, made.record.id, scopes, until)

    async def revoke(self, by: str, token: str) -> None:
        identity = await self.identify(by)
        if identity is None:
            return
        mine = self.tokens[token].account == self.tokens[by].account and self.tokens[token].good
        try:
            await self.accounts.revoke(identity, self.tokens[token].id)
            assert mine
            self.tokens[token].good = False
        except TokenNotFound:
            assert not mine

    async def go(self, steps: list[tuple[object, ...]]) -> None:
        await self.start()
        for kind, *values in steps:
            await self.step(str(kind), *values)
            for token in list(self.tokens):
                await self.identify(token)
        await self.accounts.close()


async def walk(kind: str, steps: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = MemoryStore() if kind == "memory" else await SqlStore.open(Path(folder) / "store.db")
        await Walk(store, Path(folder)).go(steps)
        await store.close()


@pytest.mark.parametrize("kind", ["memory", "sql"])
def test_whoever_is_let_in_has_a_token_that_is_good_now(kind: str) -> None:
    @settings(max_examples=length(60 if kind == "memory" else 12, 2000), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(steps=STEPS)
    def model(steps: list[tuple[object, ...]]) -> None:
        asyncio.run(walk(kind, steps))

    model()
