"""The whole story of an evaluation: prepare, resume, execute, report; several side by side."""
