"""`everforge webhook ...`: be told of events over HTTP."""
