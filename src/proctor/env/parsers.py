"""Read the answer from a model's output, and score whether it kept the requested format.

Every reading takes time linear in the text: models write megabytes, and sometimes nothing but braces.

Knows text and messages. Knows nothing of tasks, right answers or rewards other than format.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, TypeAlias, overload

from proctor.trace import text_of

Completion: TypeAlias = str | Sequence[Mapping[str, Any]]
"""A model's output: bare text, or the messages of a conversation."""


class Parser:
    """The text as it is, or what `extract_fn` returns for it.

    A subclass overrides `parse`, and `format_score` if its format can be kept partly.
    """

    def __init__(self, extract_fn: Callable[[str], Any] | None = None) -> None:
        self.extract_fn = extract_fn

    def parse(self, text: str) -> Any:
        """The answer in one text, or None if it has none."""
        return self._extract(text)

    def parse_answer(self, completion: Completion) -> Any:
        """The answer of the last assistant message with text, or None if there is no such message."""
        texts = self._texts(completion)
        return self.parse(texts[-1]) if texts else None

    def get_assistant_messages(self, completion: Completion) -> list[Mapping[str, Any]]:
        """The messages the model wrote; bare text counts as one."""
        if isinstance(completion, str):
            return [{"role": "assistant", "content": completion}]
        return [message for message in completion if message.get("role") == "assistant"]

    def format_score(self, text: str) -> float:
        """How well one text keeps the format, from 0 to 1: here, whether it has an answer."""
        return float(self.parse(text) is not None)

    def format_reward(self) -> Callable[..., float]:
        """A reward function: the mean `format_score` of the assistant messages that have text, else 0."""

        def format_reward(completion: Completion, **_: Any) -> float:
            scores = [self.format_score(text) for text in self._texts(completion)]
            return sum(scores) / len(scores) if scores else 0.0

        return format_reward

    def _extract(self, text: str) -> Any:
        return text if self.extract_fn is None else self.extract_fn(text)

    def _texts(self, completion: Completion) -> list[str]:
        texts = (text_of(message) for message in self.get_assistant_messages(completion))
        return [text for text in texts if text.strip()]


class ThinkParser(Parser):
    """What follows the last `</think>`; None if the model never finished a thought.

    The format is kept (1.0, else 0.0) by one `<think>` that opens the text, one `</think>`, and an answer
    after it. A chat template that opens the thought itself leaves `<think>` out of the text: then
    `parse` still works, but the format reward does not apply.
    """

    def parse(self, text: str) -> Any:
        _, closed, answer = text.rpartition("</think>")
        return self._extract(answer.strip()) if closed else None

    def format_score(self, text: str) -> float:
        opens, closes = text.count("<think>"), text.count("</think>")
        begins = text.lstrip().startswith("<think>")
        answers = bool(text.rpartition("</think>")[2].strip())
        return float(opens == closes == 1 and begins and answers)


class MaybeThinkParser(ThinkParser):
    """The text without its thought, if it has one.

    A text that opens with `<think>` and never closes it is all thought: it has no answer, so None.
    The format is kept by a text without any think tag, or by what `ThinkParser` asks.
    """

    def parse(self, text: str) -> Any:
        if "</think>" in text:
            return super().parse(text)
        return None if text.lstrip().startswith("<think>") else self._extract(text.strip())

    def format_score(self, text: str) -> float:
        if "<think>" in text or "</think>" in text:
            return super().format_score(text)
        return float(bool(text.strip()))


class XMLParser(Parser):
    """Fields between tags: `XMLParser(["reasoning", ("code", "answer")])`.

    A tuple names alternatives: the text holds one of them. A tag is exactly `<name>` or `</name>`.
    `extract_fn`, if given, is applied to the answer by `parse_answer`.
    """

    def __init__(
        self,
        fields: Sequence[str | tuple[str, ...]],
        answer_field: str = "answer",
        extract_fn: Callable[[str], Any] | None = None,
    ) -> None:
        super().__init__(extract_fn)
        self.fields = [(field,) if isinstance(field, str) else tuple(field) for field in fields]
        self.answer_field = answer_field
        names = self._names = [name for alternatives in self.fields for name in alternatives]
        if not names or not all(self.fields):
            raise ValueError("an XMLParser needs fields, each with at least one name")
        if repeated := [name for name, count in Counter(names).items() if count > 1]:
            raise ValueError(f"field names must differ, but {', '.join(repeated)} is given more than once")
        if malformed := [name for name in names if not re.fullmatch(r"[^\W\d][\w.-]*", name)]:
            raise ValueError(f"{malformed[0]!r} cannot be a tag; use letters, digits, '_', '-' and '.'")
        if answer_field not in (*names, "answer"):
            raise ValueError(f"answer_field is {answer_field!r}, but the fields are {', '.join(names)}")
        self._position = {name: index for index, field in enumerate(self.fields) for name in field}
        self._tag = re.compile(f"<(/?)({'|'.join(map(re.escape, names))})>")

    def parse(self, text: str, strip: bool = True) -> SimpleNamespace:
        """Every field name as an attribute, None where the text lacks it.

        The last occurrence of a field wins. Tags inside another field's value are part of that value;
        they are read as a field only if that field occurs nowhere else.
        """
        tags = self._tags(text)
        found = {element.name: element for element in _outermost(tags)}
        settled = {self._position[name] for name in found}
        found |= {
            nested.name: nested for nested in _elements(tags) if self._position[nested.name] not in settled
        }
        values: dict[str, str | None] = dict.fromkeys(self._names)
        for name, element in found.items():
            value = text[element.value_start : element.value_end]
            values[name] = value.strip() if strip else value
        return SimpleNamespace(**values)

    def parse_answer(self, completion: Completion) -> Any:
        """The answer field of the last assistant message that has text, or None."""
        if self.answer_field not in self._names:
            raise ValueError(
                f"no field is named {self.answer_field!r}; give answer_field, one of {self._names}"
            )
        parsed = super().parse_answer(completion)
        answer = getattr(parsed, self.answer_field, None)
        return None if answer is None else self._extract(answer)

    def format(self, /, **values: Any) -> str:
        """The text that `parse` reads back as these values, stripped: one value for each field."""
        if unknown := [name for name in values if name not in self._names]:
            raise ValueError(f"{unknown[0]!r} is not a field; the fields are {', '.join(self._names)}")
        blocks = []
        for field in self.fields:
            given = [name for name in field if values.get(name) is not None]
            if len(given) != 1:
                raise ValueError(f"give exactly one value for {' | '.join(field)}, not {len(given)}")
            name, value = given[0], str(values[given[0]])
            if f"<{name}>" in value or f"</{name}>" in value:
                raise ValueError(f"the value of {name} contains its own tag, so it could not be read back")
            blocks.append(_block(name, value))
        return "\n".join(blocks)

    def get_format_str(self) -> str:
        """The format to show to a model in a prompt; alternatives are separated by a bar."""
        return "\n".join(_block(" | ".join(field), "...") for field in self.fields)

    def get_fields(self) -> list[str]:
        """The name of each field; of alternatives, the first."""
        return [field[0] for field in self.fields]

    def format_score(self, text: str) -> float:
        """How well one text keeps the format, from 0 to 1.

        Only a *sound* field earns anything: one that occurs exactly once outside the others, closed,
        and not blank. So repeating a field, or scattering tags, never pays.

        - 0.4 times the share of fields that are sound;
        - 0.2 if all are sound, in the declared order, with only white space between them, and no tag of
          the format appears anywhere else, be it in a value;
        - 0.2 if the text begins with the first field, and it is sound;
        - 0.2 if the text ends with the last field, and it is sound.
        """
        tags = self._tags(text)
        elements = list(_outermost(tags))
        occurrences = Counter(self._position[element.name] for element in elements)
        sound = [
            element
            for element in elements
            if occurrences[self._position[element.name]] == 1
            and text[element.value_start : element.value_end].strip()
        ]
        if not sound:
            return 0.0
        positions = [self._position[element.name] for element in sound]
        gaps = (text[left.end : right.start] for left, right in pairwise(sound))
        exact = (
            positions == list(range(len(self.fields)))
            and len(tags) == 2 * len(sound)
            and not any(gap.strip() for gap in gaps)
        )
        begins = positions[0] == 0 and not text[: sound[0].start].strip()
        ends = positions[-1] == len(self.fields) - 1 and not text[sound[-1].end :].strip()
        return (4 * len(sound) / len(self.fields) + 2 * exact + 2 * begins + 2 * ends) / 10

    def _tags(self, text: str) -> list[_Tag]:
        return [_Tag(match[2], not match[1], *match.span()) for match in self._tag.finditer(text)]


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


class _Tag(NamedTuple):
    name: str
    opens: bool
    start: int
    end: int


class _Element(NamedTuple):
    name: str
    start: int
    value_start: int
    value_end: int
    end: int


def _elements(tags: Sequence[_Tag]) -> list[_Element]:
    """Each opening tag that its closing tag follows before the same name opens again, in text order."""
    elements = []
    following: dict[str, int] = {}
    for index in range(len(tags) - 1, -1, -1):
        tag = tags[index]
        after = following.get(tag.name)
        if tag.opens and after is not None and not tags[after].opens:
            close = tags[after]
            elements.append(_Element(tag.name, tag.start, tag.end, close.start, close.end))
        following[tag.name] = index
    return elements[::-1]


def _outermost(tags: Sequence[_Tag]) -> Iterator[_Element]:
    """The elements that do not begin inside an earlier one."""
    free_from = 0
    for element in _elements(tags):
        if element.start >= free_from:
            yield element
            free_from = element.end


def _block(name: str, value: str) -> str:
    return f"<{name}>\n{value}\n</{name}>"
