"""verifiers' results: a folder of results.jsonl and metadata.json."""
