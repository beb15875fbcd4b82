"""An evaluation from start to end: prepare, resume, execute, report; several side by side."""
