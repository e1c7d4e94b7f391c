"""Commands about the walls of a machine."""
