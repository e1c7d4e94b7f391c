"""The audit log: takes what was seen, and writes it behind. Knows nothing of HTTP, nor of where it is kept."""
