"""Environments written for other frameworks, played as they are: one folder for each framework.

Nothing imports these folders: `packages.dialects` finds them through entry points, by what an environment
imports. What they share is here: the Python that an environment runs in (`isolated`), its child process
(`process`, and `inside`, which runs there), and an environment that is played over it (`environment`).
"""
