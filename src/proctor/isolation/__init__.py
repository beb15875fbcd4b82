"""What keeps foreign code apart from the machine it runs on."""
