"""Who may do what: users, teams, tokens."""
