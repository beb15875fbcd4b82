"""What runs behind the walls: one attempt of one hosted run, played by the ordinary engine."""
