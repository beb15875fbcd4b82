"""What Proctor costs, measured against a floor in the same minute. Run with `make bench`."""
