"""Money: balances, what is held for runs, and what was spent."""
