"""The one model of the database, for SQLite and PostgreSQL. Portable types only; JSON is ASCII text, which survives NUL and lone surrogates.

How it changes over time lies in `migrations/`; a test holds the two against each other.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData()
_REAL: sa.types.TypeEngine[float] = sa.Double()


def _index(name: str, *columns: sa.Column[Any], where: str, unique: bool = False) -> None:
    """An index of those rows only."""
    sa.Index(name, *columns, unique=unique, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


machines = sa.Table(
    "machines",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("created_at", _REAL, nullable=False),
    sa.Column("last_used_at", _REAL, nullable=False),
    sa.Column("residence", sa.Text, nullable=False),
    sa.Column("engine", sa.Text, nullable=False),
    sa.Column("image", sa.Text, nullable=False),
    sa.Column("memory_mb", sa.BigInteger, nullable=False),
    sa.Column("cpus", _REAL, nullable=False),
    sa.Column("disk_mb", sa.BigInteger, nullable=False),
    sa.Column("processes", sa.BigInteger, nullable=False),
    sa.Column("idle_seconds", _REAL, nullable=False),
    sa.Column("history", sa.Text, nullable=False),
    sa.Column("durability", sa.Text, nullable=False),
    sa.Column("tags", sa.Text, nullable=False),  # JSON; `machine_tags` is only the index of it
    sa.Column("metadata", sa.Text, nullable=False),  # JSON
    sa.Column("env", sa.Text, nullable=False),  # JSON
    sa.Column("egress", sa.Text, nullable=False, server_default="{}"),  # JSON
    sa.Column("sandbox", sa.Text),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("head", sa.Text),
    sa.Column("next_instruction", sa.BigInteger, nullable=False),
    sa.Column("unsaved_from", sa.BigInteger, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("failed_wakes", sa.BigInteger, nullable=False),
    sa.Column("notice", sa.Text),
    sa.Column("source", sa.Text),
    sa.Column("source_position", sa.BigInteger),
    sa.Column("expires_at", _REAL),
    sa.Column("awake_since", _REAL),
    sa.Column("deleted_at", _REAL),
    # Below: the store's own, not in MachineRecord.
    sa.Column("position_floor", sa.BigInteger, nullable=False, server_default="0"),  # no position under it is given any more
    sa.Column("purged_at", _REAL),  # set: nobody sees it any more, and its tape stays only as long as that of a fork begins with it
)

_index("machines_by_name", machines.c.account, machines.c.name, where="deleted_at IS NULL", unique=True)
sa.Index("machines_by_time", machines.c.created_at, machines.c.id)
sa.Index("machines_by_account", machines.c.account, machines.c.created_at, machines.c.id)
sa.Index("machines_by_residence", machines.c.residence, machines.c.created_at, machines.c.id)
sa.Index("machines_by_state", machines.c.account, machines.c.residence, machines.c.created_at, machines.c.id)
_index("machines_by_expiry", machines.c.expires_at, where="expires_at IS NOT NULL AND deleted_at IS NULL")
_index("machines_by_source", machines.c.source, where="source IS NOT NULL")
_index("machines_by_head", machines.c.head, where="head IS NOT NULL")
_index("machines_by_deletion", machines.c.deleted_at, where="deleted_at IS NOT NULL")
_index("machines_by_purge", machines.c.purged_at, where="purged_at IS NOT NULL")

machine_tags = sa.Table(
    "machine_tags",
    metadata,
    sa.Column("machine", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
    # Copies of what never changes, so that a page of one tag's machines is one walk along an index.
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("created_at", _REAL, nullable=False),
    sqlite_with_rowid=False,
)
sa.Index("machine_tags_by_value", machine_tags.c.key, machine_tags.c.value, machine_tags.c.created_at, machine_tags.c.machine)
sa.Index(
    "machine_tags_by_account", machine_tags.c.account, machine_tags.c.key, machine_tags.c.value, machine_tags.c.created_at, machine_tags.c.machine
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("machine", sa.Text, primary_key=True),
    sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("width", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("instruction", sa.BigInteger),
    sa.Column("key", sa.Text),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("frame", sa.BigInteger, nullable=False),
    sa.Column("time", _REAL, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sqlite_with_rowid=False,  # the tape lies in the order it is read in
)
# Ends with the position: the last output of an instruction is one step down the tree.
sa.Index("events_by_instruction", events.c.machine, events.c.instruction, events.c.kind, events.c.position)
_index("events_by_frame", events.c.machine, events.c.epoch, events.c.frame, where="frame > 0")
_index("events_by_key", events.c.machine, events.c.key, where="key IS NOT NULL")

# Accepted and not ended. It could be had from `events`, but only by looking at every instruction that a machine ever had.
unended = sa.Table(
    "unended",
    metadata,
    sa.Column("machine", sa.Text, primary_key=True),
    sa.Column("instruction", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

points = sa.Table(
    "points",
    metadata,
    sa.Column("machine", sa.Text, primary_key=True),
    sa.Column("snapshot", sa.Text, primary_key=True),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("instruction", sa.BigInteger),
    sa.Column("created_at", _REAL, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("name", sa.Text),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
sa.Index("points_by_snapshot", points.c.snapshot)

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),  # always 1: the last run
    sa.Column("boot", sa.Text, nullable=False),  # the kernel's boot id: another one means that the computer was down
    sa.Column("clean", sa.Boolean, nullable=False),
)

# Never removed: a machine cannot be made for an account that was deleted meanwhile. Its name and its address are free again.
accounts = sa.Table(
    "accounts",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("same_name", sa.Text, nullable=False),  # what it is compared by
    sa.Column("email", sa.Text),
    sa.Column("same_email", sa.Text),
    sa.Column("created_at", _REAL, nullable=False),
    sa.Column("deleted_at", _REAL),
)
_index("accounts_by_name", accounts.c.same_name, where="deleted_at IS NULL", unique=True)
_index("accounts_by_email", accounts.c.same_email, where="deleted_at IS NULL AND same_email IS NOT NULL", unique=True)

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("name", sa.Text),
    sa.Column("scopes", sa.Text, nullable=False),  # words, a space between
    sa.Column("created_at", _REAL, nullable=False),
    sa.Column("last_used_at", _REAL),
    sa.Column("expires_at", _REAL),
    sa.Column("revoked_at", _REAL),
    sa.Column("tags", sa.Text, nullable=False, server_default="{}"),  # JSON
    sqlite_with_rowid=False,
)
sa.Index("tokens_by_account", tokens.c.account, tokens.c.created_at, tokens.c.id)

invitations = sa.Table(
    "invitations",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("email", sa.Text),
    sa.Column("created_at", _REAL, nullable=False),
    sa.Column("expires_at", _REAL, nullable=False),
    sa.Column("used_at", _REAL),
    sqlite_with_rowid=False,
)

# What a request with an idempotency key has made. (Those of instructions are on the tape.)
keys = sa.Table(
    "keys",
    metadata,
    sa.Column("account", sa.Text, primary_key=True),
    sa.Column("route", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("request", sa.Text, nullable=False),  # its hash
    sa.Column("made", sa.Text, nullable=False),  # ids of machines, a space between
    sa.Column("created_at", _REAL, nullable=False),
    sqlite_with_rowid=False,
)
sa.Index("keys_by_time", keys.c.created_at)

# Sums that outlive the machines they come from.
usage = sa.Table(
    "usage",
    metadata,
    sa.Column("account", sa.Text, primary_key=True),
    sa.Column("instructions", sa.BigInteger, nullable=False),
    sa.Column("runtime_ms", sa.BigInteger, nullable=False),
    sa.Column("disk_bytes", sa.BigInteger, nullable=False),  # this one only of points that are there
    sa.Column("egress_bytes", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("awake_ms", sa.BigInteger, nullable=False, server_default="0"),  # of machines that are awake now: until they were last
    sqlite_with_rowid=False,
)

egress_attempts = sa.Table(
    "egress_attempts",
    metadata,
    sa.Column("machine", sa.Text, primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("port", sa.BigInteger, nullable=False),
    sa.Column("speech", sa.Text, nullable=False),
    sa.Column("method", sa.Text, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("verdict", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("allowed_by", sa.Text, nullable=False),
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("sent_bytes", sa.BigInteger, nullable=False),
    sa.Column("received_bytes", sa.BigInteger, nullable=False),
    sa.Column("secrets", sa.Text, nullable=False),
    sa.Column("began_at", _REAL, nullable=False),
    sa.Column("ended_at", _REAL),
    sqlite_with_rowid=False,
)

# What new machines of an account may reach, where it has said so.
egress_defaults = sa.Table(
    "egress_defaults",
    metadata,
    sa.Column("account", sa.Text, primary_key=True),
    sa.Column("policy", sa.Text, nullable=False),  # JSON
    sqlite_with_rowid=False,
)

secrets = sa.Table(
    "secrets",
    metadata,
    sa.Column("account", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("placeholder", sa.Text, nullable=False),
    sa.Column("sealed", sa.Text, nullable=False),  # the value, encrypted
    sa.Column("hosts", sa.Text, nullable=False),  # words, a space between
    sa.Column("header", sa.Text, nullable=False),
    sa.Column("places", sa.Text, nullable=False),  # words, a space between
    sa.Column("created_at", _REAL, nullable=False),
    sa.Column("changed_at", _REAL, nullable=False),
    sqlite_with_rowid=False,
)
# Entries are added and, the oldest first, let go. Nothing is changed: each one's hash covers the one before.
audit = sa.Table(
    "audit",
    metadata,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("time_ms", sa.BigInteger, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("account", sa.Text),
    sa.Column("account_name", sa.Text),
    sa.Column("token", sa.Text),
    sa.Column("machine", sa.Text),
    sa.Column("address", sa.Text),
    sa.Column("request", sa.Text),
    sa.Column("detail", sa.Text, nullable=False),  # JSON
    sa.Column("previous", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sqlite_with_rowid=False,
)
sa.Index("audit_by_account", audit.c.account, audit.c.number)
sa.Index("audit_by_time", audit.c.time_ms)

audit_head = sa.Table(
    "audit_head",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),  # always 1: the last entry that was written
    sa.Column("number", sa.BigInteger, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
)

webhooks = sa.Table(
    "webhooks",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("events", sa.Text, nullable=False),  # words, a space between
    sa.Column("secret", sa.Text, nullable=False),  # what its deliveries are signed with
    sa.Column("created_at", _REAL, nullable=False),
    sqlite_with_rowid=False,
)
sa.Index("webhooks_by_account", webhooks.c.account, webhooks.c.created_at, webhooks.c.id)

# What has not arrived yet, and what never did.
deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("webhook", sa.Text, nullable=False),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),  # JSON, byte for byte as it is signed
    sa.Column("created_at", _REAL, nullable=False),
    sa.Column("attempts", sa.BigInteger, nullable=False),
    sa.Column("next_at", _REAL, nullable=False),
    sa.Column("dead_at", _REAL),  # set: it was tried often enough
    sa.Column("error", sa.Text),  # why the last try failed
    sqlite_with_rowid=False,
)
_index("deliveries_by_time", deliveries.c.next_at, where="dead_at IS NULL")
_index("deliveries_by_account_and_time", deliveries.c.account, deliveries.c.next_at, where="dead_at IS NULL")
sa.Index("deliveries_by_webhook", deliveries.c.webhook, deliveries.c.created_at, deliveries.c.id)
sa.Index("deliveries_by_account", deliveries.c.account, deliveries.c.created_at, deliveries.c.id)

# What the owner of the server set for an account; null: as the settings say.
quotas = sa.Table(
    "quotas",
    metadata,
    sa.Column("account", sa.Text, primary_key=True),
    sa.Column("machines", sa.BigInteger),
    sa.Column("awake", sa.BigInteger),
    sa.Column("memory_mb", sa.BigInteger),
    sa.Column("disk_mb", sa.BigInteger),
    sa.Column("requests_per_second", _REAL),
    sa.Column("egress_bytes_per_day", sa.BigInteger),
    sqlite_with_rowid=False,
)
