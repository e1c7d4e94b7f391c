"""The client, written once. `_sync/` is made of these files by tools/make_sync.py; change them here."""
