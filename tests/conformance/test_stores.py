from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everforge.store.base import Store
from everforge.store.memory import MemoryStore
from everforge.store.sql.store import SqlStore

from .account_suite import AccountSuite
from .audit_suite import AuditSuite
from .quota_suite import QuotaSuite
from .store_suite import StoreSuite
from .webhook_suite import WebhookSuite


class TestMemoryStore(StoreSuite, AccountSuite, AuditSuite, WebhookSuite, QuotaSuite):
    @pytest.fixture
    async def store(self) -> Store:
        return MemoryStore()


class TestSqlStore(StoreSuite, AccountSuite, AuditSuite, WebhookSuite, QuotaSuite):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        store = await SqlStore.open(tmp_path / "store.db")
        yield store
        await store.close()
