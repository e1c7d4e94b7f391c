"""`everforge machine files ...`: files of a machine."""
