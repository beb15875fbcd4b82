"""What verifiers and `import proctor as vf` must give alike: parsers, helpers, messages, modules.

python table.py PACKAGE      prints one JSON object: the name of a case → its result. Runs in either Python.
"""

import importlib
import json
import sys

TEXTS = {
    "plain": "42",
    "empty": "",
    "xml": "<think>hm</think><answer>42</answer>",
    "xml lines": "<think>\nhm\n</think>\n<answer>\n42\n</answer>\n",
    "answer only": "<answer>42</answer>",
    "twice": "<answer>1</answer> no, <answer>2</answer>",
    "nested": "<answer><answer>1</answer></answer>",
    "unclosed": "<answer>42",
    "wrong order": "<answer>42</answer><think>late</think>",
    "upper case": "<ANSWER>42</ANSWER>",
    "attributes": '<answer id="1">42</answer>',
    "spaces": "<think> a </think> <answer>  42  </answer>",
    "alternative": "<think>hm</think><code>print(42)</code>",
    "both alternatives": "<code>a</code><answer>b</answer>",
    "text around": "Well. <think>hm</think> So: <answer>42</answer>. Done.",
    "boxed": "so \\boxed{42}",
    "boxed nested": "\\boxed{\\frac{1}{2}}",
    "boxed twice": "\\boxed{1} or \\boxed{2}",
    "boxed unclosed": "\\boxed{42",
    "boxed thought": "<think>\\boxed{1}</think> \\boxed{2}",
    "think unclosed": "<think>hm \\boxed{1}",
    "think closed only": "hm</think>\\boxed{3}",
    "two thoughts": "<think>a</think>b<think>c</think>d",
    "hash": "steps\n#### 42",
    "hash twice": "#### 1\n#### 2",
    "hash commas": "#### 1,234",
}


def fields_of(parsed):
    return {name: getattr(parsed, name) for name in sorted(vars(parsed))}


def text_cases(vf, name, text):
    completion = [{"role": "assistant", "content": text}]
    earlier = [
        {"role": "assistant", "content": "<think>first</think><answer>7</answer> \\boxed{7}"},
        {"role": "user", "content": "<answer>8</answer>"},
        *completion,
    ]
    simple = vf.XMLParser(["think", "answer"])
    either = vf.XMLParser(["think", ("code", "answer")], answer_field="code")
    yield f"xml fields: {name}", lambda: fields_of(simple.parse(text))
    yield f"xml unstripped: {name}", lambda: fields_of(simple.parse(text, strip=False))
    yield f"xml answer: {name}", lambda: simple.parse_answer(completion)
    yield f"xml answer of three: {name}", lambda: simple.parse_answer(earlier)
    yield f"xml format: {name}", lambda: simple.get_format_reward_func()(completion)
    yield f"xml format of three: {name}", lambda: simple.get_format_reward_func()(earlier)
    yield f"either fields: {name}", lambda: fields_of(either.parse(text))
    yield f"either answer: {name}", lambda: either.parse_answer(completion)
    yield f"either format: {name}", lambda: either.get_format_reward_func()(completion)
    yield f"plain: {name}", lambda: vf.Parser().parse_answer(completion)
    yield f"plain boxed: {name}", lambda: vf.Parser(vf.extract_boxed_answer).parse_answer(completion)
    yield f"think: {name}", lambda: vf.ThinkParser(vf.extract_boxed_answer).parse_answer(completion)
    yield f"think format: {name}", lambda: vf.ThinkParser().get_format_reward_func()(completion)
    maybe = vf.MaybeThinkParser(vf.extract_boxed_answer)
    yield f"maybe think: {name}", lambda: maybe.parse_answer(completion)
    yield f"boxed: {name}", lambda: vf.extract_boxed_answer(text)
    yield f"boxed, strict: {name}", lambda: vf.extract_boxed_answer(text, strict=True)
    yield f"hash: {name}", lambda: vf.extract_hash_answer(text)


def message_cases(vf):
    made = {
        "user": lambda: vf.UserMessage(content="hi"),
        "system": lambda: vf.SystemMessage(content="be brief"),
        "assistant": lambda: vf.AssistantMessage(content="yes"),
        "tool": lambda: vf.ToolMessage(content="3", tool_call_id="c1"),
    }
    for name, make in made.items():
        yield f"message {name}: role", lambda make=make: [make().role, make()["role"], make().get("role")]
        yield f"message {name}: content", lambda make=make: [make().content, make()["content"]]
        yield f"message {name}: absent", lambda make=make: make().get("nothing", "default")
    call = lambda: vf.ToolCall(id="c1", name="add", arguments="{}")  # noqa: E731
    yield "tool call", lambda: [call().id, call().name, call().arguments]
    yield (
        "assistant calls",
        lambda: [each.name for each in vf.AssistantMessage(content=None, tool_calls=[call()]).tool_calls],
    )


NAMES = {
    "types": ["Messages", "UserMessage", "SystemMessage", "AssistantMessage", "ToolMessage", "State", "Info"],
    "utils.data_utils": ["load_example_dataset", "extract_boxed_answer", "extract_hash_answer"],
    "rubrics.rubric": ["Rubric"],
    "rubrics.judge_rubric": ["JudgeRubric"],
    "rubrics.math_rubric": ["MathRubric"],
    "rubrics.rubric_group": ["RubricGroup"],
    "parsers.parser": ["Parser"],
    "parsers.xml_parser": ["XMLParser"],
    "parsers.think_parser": ["ThinkParser"],
    "parsers.maybe_think_parser": ["MaybeThinkParser"],
    "envs.environment": ["Environment"],
    "envs.singleturn_env": ["SingleTurnEnv"],
    "envs.multiturn_env": ["MultiTurnEnv"],
    "envs.tool_env": ["ToolEnv"],
    "envs.stateful_tool_env": ["StatefulToolEnv"],
    "envs.env_group": ["EnvGroup"],
}


def name_cases(package):
    for module, names in NAMES.items():
        for name in names:
            place = f"{package}.{module}"
            yield f"{module}.{name}", lambda p=place, n=name: hasattr(importlib.import_module(p), n)


def run(case):
    """Its result, or the kind of error that it ends in."""
    try:
        return case()
    except Exception as error:
        return f"raises {type(error).__name__}"


def main(package):
    vf = importlib.import_module(package)
    results = {}
    for name, text in TEXTS.items():
        results.update((case, run(function)) for case, function in text_cases(vf, name, text))
    results.update((case, run(function)) for case, function in message_cases(vf))
    results.update((case, run(function)) for case, function in name_cases(package))
    sys.stdout.write(json.dumps(results) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
