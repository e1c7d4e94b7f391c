"""The contract: ids, errors, frames, messages, tape events. No I/O; imports nothing of ours, and only the standard library."""
