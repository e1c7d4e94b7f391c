"""`everforge account ...`: the accounts of a server, for its owner."""
