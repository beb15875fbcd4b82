"""The authoring kit: how environments are written."""
