"""Users, teams and tokens: who may do what."""
