"""promptfoo's results: the JSON file of `promptfoo eval -o results.json`."""
