"""Runs as data to train on."""
