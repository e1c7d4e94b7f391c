"""`everforge token ...`: the tokens of an account."""
