"""Very many machines in a store, at once: copies of one that is there, all asleep. Written past the store, which would take minutes."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

GROUPS = 100  # of equal size, by the tag `group`
RARE = 10  # machines with the tag `rare`
_NUMBERS = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)"
_GROUP = f"n % {GROUPS}"
_CHANGED = {
    "id": "printf('m%015d', n)",
    "name": "printf('one-of-many-%06d', n)",
    "created_at": "created_at - n * 0.001",
    "residence": "'asleep'",
    "sandbox": "NULL",
    "tags": f"CASE WHEN n <= {RARE} THEN json_object('group', '' || {_GROUP}, 'rare', 'yes') ELSE json_object('group', '' || {_GROUP}) END",
}
_TAGS = """
INSERT INTO machine_tags (machine, key, value, account, created_at)
SELECT m.id, tag.key, tag.value, m.account, m.created_at FROM machines m, json_each(m.tags) tag WHERE m.name LIKE 'one-of-many-%'
"""


def add_machines(database: Path, like: str, count: int) -> None:
    """Blocks. No server may run on it."""
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        columns = [str(row[1]) for row in connection.execute("PRAGMA table_info(machines)")]
        values = ", ".join(_CHANGED.get(column, column) for column in columns)
        source = "SELECT * FROM machines WHERE name = :like AND deleted_at IS NULL"
        statement = f"INSERT INTO machines ({', '.join(columns)}) {_NUMBERS} SELECT {values} FROM numbers, ({source})"
        connection.execute(statement, {"count": count, "like": like})
        connection.execute(_TAGS)
