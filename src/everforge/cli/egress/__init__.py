"""`everforge egress`: what machines may reach."""
