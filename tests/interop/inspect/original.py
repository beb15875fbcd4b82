"""Evaluate a task with Inspect itself; prints its samples as one line of JSON. Runs in its own Python.

python original.py FILE_OR_FILE@TASK BASE_URL EPOCHS
"""

import json
import os
import sys
import tempfile

os.environ["INSPECT_DISPLAY"] = "none"

from inspect_ai import eval as evaluate
from inspect_ai.scorer import value_to_float


def numbers(name, value):
    to_float = value_to_float()
    if isinstance(value, dict):
        return {f"{name}.{key}": to_float(each) for key, each in value.items()}
    return {name: to_float(value)}


def row(sample):
    metrics = {}
    for name, score in sample.scores.items():
        metrics.update(numbers(name, score.value))
    return {
        "example_id": sample.id,
        "messages": [[each.role, each.text] for each in sample.messages],
        "metrics": metrics,
        "limit": sample.limit.type if sample.limit else None,
    }


def main(task, url, epochs):
    os.environ.update(MOCK_API_KEY="none", MOCK_BASE_URL=url)
    with tempfile.TemporaryDirectory() as folder:
        log = evaluate(
            task,
            model="openai-api/mock/m",
            epochs=int(epochs),
            log_dir=folder,
            max_samples=1,
            max_connections=1,
            log_realtime=False,
            ctl_server=False,
        )[0]
        assert log.status == "success", log.error
        sys.stdout.write(json.dumps([row(each) for each in log.samples]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
