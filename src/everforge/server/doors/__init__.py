"""What the server answers, by noun: handlers decode nothing and decide nothing; they ask the machines or the accounts, and show what these say."""
