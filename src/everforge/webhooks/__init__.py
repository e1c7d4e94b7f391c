"""Tells events to whoever asked to be told, over HTTP: signed, tried again, and kept until it arrives. Knows nothing of machines."""
