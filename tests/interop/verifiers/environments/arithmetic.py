"""Single turn: sums, an XML parser and its format reward, weights, arguments of the loader."""

import verifiers as vf
from datasets import Dataset

SYSTEM = "Think inside <think> tags, then answer inside <answer> tags."


def load_environment(numbers: int = 4, bonus: float = 0.2) -> vf.Environment:
    rows = [{"question": f"What is {n} + {n + 1}?", "answer": str(2 * n + 1)} for n in range(numbers)]
    parser = vf.XMLParser(["think", "answer"], answer_field="answer")

    def correct(completion, answer, parser) -> float:
        return 1.0 if (parser.parse_answer(completion) or "").strip() == answer else 0.0

    def brevity(completion) -> float:
        return 1.0 / (1 + len(completion[-1]["content"]))

    rubric = vf.Rubric(funcs=[correct, parser.get_format_reward_func()], weights=[1.0, bonus], parser=parser)
    rubric.add_metric(brevity)
    return vf.SingleTurnEnv(
        dataset=Dataset.from_list(rows), system_prompt=SYSTEM, parser=parser, rubric=rubric
    )
