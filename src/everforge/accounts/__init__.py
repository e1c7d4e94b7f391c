"""Who is asking, and what they may: accounts, tokens, sign-up. Knows nothing of machines."""
