"""Boxed answers behind thoughts: a think parser, a math rubric in a group with another rubric, few-shot."""

import verifiers as vf
from datasets import Dataset

FEW_SHOT = [
    {"role": "user", "content": "What is half of 2?"},
    {"role": "assistant", "content": "<think>easy</think>\\boxed{1}"},
]


def thinks(completion) -> float:
    return float("<think>" in completion[-1]["content"])


def load_environment() -> vf.Environment:
    rows = [
        {"question": f"What is half of {n}?", "answer": f"\\frac{{{n}}}{{2}}", "level": n} for n in (3, 4, 5)
    ]
    parser = vf.MaybeThinkParser(extract_fn=vf.extract_boxed_answer)

    def box(parser, completion, level) -> float:
        return float(bool(parser.parse_answer(completion))) / level

    return vf.SingleTurnEnv(
        dataset=Dataset.from_list(rows),
        few_shot=FEW_SHOT,
        parser=parser,
        rubric=vf.RubricGroup(
            rubrics=[
                vf.MathRubric(parser=parser),
                vf.Rubric(funcs=[thinks, box], weights=[0.1, 1.0], parser=parser),
            ]
        ),
    )
