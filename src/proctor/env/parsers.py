"""Read the answer from a model's output, and score whether it kept the requested format.

Parsers read what verifiers' parsers of the same name read. With `strict=True` they read only what a model
wrote as it was asked to, which pays off where rewards are trained on. Every reading takes time linear in the
text: models write megabytes, and sometimes nothing but braces.

Knows text and messages. Knows nothing of tasks, right answers or rewards other than format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from proctor.trace import text_of

Completion: TypeAlias = str | Sequence[Mapping[str, Any]]
"""A model's output: bare text, or the messages of a conversation."""
FormatReward = Callable[..., float]


class Parser:
    """The text as it is, or what `extract_fn` returns for it.

    A subclass overrides `parse`, and `format_score` if its format can be kept partly. With `strict`, a
    message without text is passed over.
    """

    def __init__(self, extract_fn: Callable[[str], Any] | None = None, *, strict: bool = False) -> None:
        self.extract_fn: Callable[[str], Any] = extract_fn or return_unchanged
        self.strict = strict

    def parse(self, text: str) -> Any:
        """The answer in one text."""
        return self.extract_fn(text)

    def parse_answer(self, completion: Completion) -> Any:
        """The answer of the last assistant message, or None if there is no such message."""
        texts = self._texts(completion) if self.strict else self._all_texts(completion)
        return self.parse(texts[-1]) if texts else None

    def get_assistant_messages(self, completion: Completion) -> list[Any]:
        """The messages the model wrote; bare text counts as one."""
        if isinstance(completion, str):
            return [{"role": "assistant", "content": completion}]
        return messages_of_role(completion, "assistant")

    def get_system_messages(self, completion: Sequence[Mapping[str, Any]]) -> list[Any]:
        return messages_of_role(completion, "system")

    def get_user_messages(self, completion: Sequence[Mapping[str, Any]]) -> list[Any]:
        return messages_of_role(completion, "user")

    def get_tool_messages(self, completion: Sequence[Mapping[str, Any]]) -> list[Any]:
        return messages_of_role(completion, "tool")

    def format_score(self, text: str) -> float:
        """How well one text keeps the format, from 0 to 1: here, whether it has an answer."""
        return float(self.parse(text) is not None)

    def format_reward(self) -> FormatReward:
        """A reward function: the mean `format_score` of the assistant messages that have text, else 0."""

        def format_reward(completion: Completion, **_: Any) -> float:
            scores = [self.format_score(text) for text in self._texts(completion)]
            return sum(scores) / len(scores) if scores else 0.0

        return format_reward

    def get_format_reward_func(self) -> FormatReward:
        """verifiers' reward function for the format; text without a format always keeps it."""

        def format_reward_func(completion: Completion, **_: Any) -> float:  # noqa: ARG001
            return 1.0

        return format_reward_func

    def _all_texts(self, completion: Completion) -> list[str]:
        return [joined_text(message) for message in self.get_assistant_messages(completion)]

    def _texts(self, completion: Completion) -> list[str]:
        texts = (text_of(message) for message in self.get_assistant_messages(completion))
        return [text for text in texts if text.strip()]


class ThinkParser(Parser):
    """What follows the last `</think>`; nothing if the model never finished a thought: an empty text or,
    with `strict`, None.

    The format is kept (1.0, else 0.0) by one `<think>` that opens the text, one `</think>`, and an answer
    after it. A chat template that opens the thought itself leaves `<think>` out of the text: then
    `parse` still works, but the format reward does not apply.
    """

    def parse(self, text: str) -> Any:
        _, closed, answer = text.rpartition("</think>")
        if not closed:
            return None if self.strict else self.extract_fn("")
        return self.extract_fn(answer.strip())

    def format_score(self, text: str) -> float:
        return float(follows_format(text) and bool(text.rpartition("</think>")[2].strip()))

    def get_format_reward_func(self) -> FormatReward:
        """verifiers' reward function for the format: the share of the assistant's messages that keep it."""

        def format_reward_func(completion: Completion, **_: Any) -> float:
            kept = [follows_format(text) for text in self._all_texts(completion)]
            return sum(kept) / len(kept) if kept else 0.0

        return format_reward_func


class MaybeThinkParser(ThinkParser):
    """The text without its thought, if it has one.

    With `strict`, a text that opens with `<think>` and never closes it is all thought: it has no answer, so
    None. The format is kept by a text without any think tag, or by what `ThinkParser` asks.
    """

    def parse(self, text: str) -> Any:
        if self.strict and "</think>" not in text and text.lstrip().startswith("<think>"):
            return None
        return self.extract_fn(text.rpartition("</think>")[2].strip())

    def format_score(self, text: str) -> float:
        if "<think>" in text or "</think>" in text:
            return super().format_score(text)
        return float(bool(text.strip()))

    def get_format_reward_func(self) -> FormatReward:
        return Parser.get_format_reward_func(self)


def return_unchanged(text: str) -> str:
    return text


def follows_format(text: str) -> bool:
    """Whether a text opens with its only thought, and continues after it."""
    once = text.count("<think>") == text.count("</think>") == 1
    return once and text.strip().startswith("<think>") and bool(text.rpartition("</think>")[2])


def messages_of_role(messages: Sequence[Mapping[str, Any]], role: str) -> list[Any]:
    return [message for message in messages if message.get("role") == role]


def joined_text(message: Mapping[str, Any]) -> str:
    """The text of a message; its parts are separated by a blank, as verifiers joins them."""
    content = message.get("content")
    if isinstance(content, str) or not content:
        return content or ""
    parts = (part.get("text") for part in content if isinstance(part, Mapping) and part.get("type") == "text")
    return " ".join(part for part in parts if isinstance(part, str)).strip()


BOX = "\\boxed{"


def extract_boxed_answer(text: str, strict: bool = False) -> str:
    r"""What the last `\boxed{…}` holds, as verifiers reads it; else the text or, if `strict`, nothing."""
    start = text.rfind(BOX)
    depth = 1
    for brace in re.finditer(r"[{}]", text[start + len(BOX) :]) if start >= 0 else ():
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return text[start + len(BOX) :][: brace.start()]
    return "" if strict else text


def extract_hash_answer(text: str) -> str:
    """What follows the first `####`, as solutions of GSM8K end; else the text itself."""
    parts = text.split("####", 2)
    return text if len(parts) == 1 else parts[1].strip()


@overload
def extract_boxed(text: str, or_text: Literal[False] = False) -> str | None: ...
@overload
def extract_boxed(text: str, or_text: Literal[True]) -> str: ...
def extract_boxed(text: str, or_text: bool = False) -> str | None:
    r"""What the last balanced `\boxed{…}` holds, stripped; else None, or the text itself if asked.

    Escaped braces do not count. Of nested boxes the inner one is the last.
    """
    last_start, last_end = -1, -1
    open_braces: list[int] = []  # where a box's content starts, or -1 for a brace that opens no box
    first_box = text.find(r"\boxed")
    for token in _BRACES.finditer(text, first_box) if first_box >= 0 else ():
        if token["box"]:
            open_braces.append(token.end())
        elif token[0] == "{":
            open_braces.append(-1)
        elif token[0] == "}" and open_braces and (start := open_braces.pop()) > last_start:
            last_start, last_end = start, token.start()
    if last_start >= 0:
        return text[last_start:last_end].strip()
    return text if or_text else None


# The optional backslash allows for text that was escaped once too often.
_BRACES = re.compile(r"(?P<box>\\\\?boxed\s*\{)|\\.|[{}]", re.DOTALL)
