"""`everforge machine ...`: machines and what can be done with them."""
