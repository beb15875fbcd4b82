"""The tables, one module per subject. Import them from `tables.py`, which knows them all."""
