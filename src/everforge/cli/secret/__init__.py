"""`everforge secret`: values that machines use and never see."""
