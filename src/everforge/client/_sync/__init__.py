"""Made from `_async/` by tools/make_sync.py, all but transport.py and socket.py; change it there."""
