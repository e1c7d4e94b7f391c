"""Kept points, stored by content: each page of a machine's points once."""
