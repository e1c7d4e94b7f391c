"""What tests share: a whole house on fakes, a server in a process of its own, counters of what must not leak."""
