"""Where verifiers has Rubric."""

from proctor.env.rubric import Rubric as Rubric
