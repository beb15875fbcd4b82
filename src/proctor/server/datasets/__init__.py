"""Datasets: files of rows, pushed by people, and read by them and by runs."""
