"""`everforge audit ...`: who did what."""
