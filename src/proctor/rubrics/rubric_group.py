"""Where verifiers has RubricGroup."""

from proctor.env.rubric import RubricGroup as RubricGroup
