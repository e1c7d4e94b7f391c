"""Kinds of isolation. An engine starts, saves, restores and destroys sandboxes and gives a link; it knows neither Python nor accounts."""
