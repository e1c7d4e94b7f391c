"""The egress door: the one way from a machine to the network, and what may pass through it."""
