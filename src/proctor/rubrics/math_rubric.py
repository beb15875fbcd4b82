"""Where verifiers has MathRubric."""

from proctor.env.math_rubric import MathRubric as MathRubric
