"""Money: who has how much, what is held for runs, and what was spent."""
