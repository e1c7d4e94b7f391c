"""`everforge webhook dead ...`: what could not be delivered."""
