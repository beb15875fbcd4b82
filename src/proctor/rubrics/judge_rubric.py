"""Where verifiers has JudgeRubric."""

from proctor.env.judge import JudgeRubric as JudgeRubric
