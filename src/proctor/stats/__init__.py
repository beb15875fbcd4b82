"""How far a number may be believed."""
