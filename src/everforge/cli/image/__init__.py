"""`everforge image ...`: the root file systems that machines start from."""
