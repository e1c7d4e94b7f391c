"""The Python SDK: what `import everforge` gives.

Written once, in `_async/`; `_sync/` is made from it by `tools/make_sync.py`. By hand in both are only `transport.py` and `socket.py`, where the two
worlds really differ. What needs no I/O lies beside them and serves both.
"""
