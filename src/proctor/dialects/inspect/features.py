"""What a task uses of Inspect, by the names in its source, and whether that works here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proctor.dialects.names import find_names
from proctor.packages.dialects import DialectFeature

PACKAGE = "inspect_ai"
NOTED = {
    "get_model": "the evaluated model is recorded; one that is named here is asked by Inspect with its own "
    "key, and not recorded",
    "model_graded_qa": "without `model`, the evaluated model grades itself and is recorded; a named one is "
    "asked by Inspect with its own key",
    "model_graded_fact": "without `model`, the evaluated model grades itself and is recorded; a named one "
    "is asked by Inspect with its own key",
    "Epochs": "-r says how often each sample is played; reducers are left out",
    "sandbox": "Inspect starts the sandboxes that the task names",
    "bash": "runs in the sandbox that the task names",
    "python": "runs in the sandbox that the task names",
    "hf_dataset": "downloads the dataset while the task is loaded",
}
UNSUPPORTED = {
    "human_agent": "a person would have to work in a terminal of the task's process",
    "human_cli": "a person would have to work in a terminal of the task's process",
    "SampleSource": "a dataset that makes samples while it runs has no tasks to count",
    "TaskSource": "tasks that are made while others run; write them as @task functions",
    "task_source": "tasks that are made while others run; write them as @task functions",
    "eval_set": "run the tasks with `proctor eval run`; a suite runs several",
}


def describe(files: Sequence[Path]) -> list[DialectFeature]:
    used = sorted({name for file in files for name in find_names(file, PACKAGE)})
    return [
        DialectFeature(
            name=name, supported=name not in UNSUPPORTED, note=UNSUPPORTED.get(name) or NOTED.get(name, "")
        )
        for name in used
        if not name.startswith("_")
    ]
