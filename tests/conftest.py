import hypothesis as _  # before any test: importing it late, from the plugin's summary, has been seen to trip over a bug of CPython 3.11
