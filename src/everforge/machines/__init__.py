"""Decides everything: lifecycle, keepers, idle, admission, forks, rollback, recovery. Never names a concrete engine, database or protocol."""
