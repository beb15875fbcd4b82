"""XMLParser: fields between tags.

Reads what verifiers' parser of the same name reads: of each field the first occurrence. With `strict=True`
it reads the last one, outside the values of other fields. Knows nothing of XML beyond exact tags.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

from proctor.env.parsers import Completion, FormatReward, Parser


class XMLParser(Parser):
    """Fields between tags: `XMLParser(["reasoning", ("code", "answer")])`.

    A tuple names alternatives: the text holds one of them. A tag is exactly `<name>` or `</name>`. With
    `strict`, names must be able to be tags, `parse` reads the last occurrence outside other values,
    `parse_answer` the last message that has text, and `extract_fn` is applied to the answer.
    """

    def __init__(
        self,
        fields: Sequence[str | tuple[str, ...]],
        answer_field: str = "answer",
        extract_fn: Callable[[str], Any] | None = None,
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(extract_fn, strict=strict)
        self.fields = [(field,) if isinstance(field, str) else tuple(field) for field in fields]
        self.answer_field = answer_field
        self._names = [name for alternatives in self.fields for name in alternatives]
        check_fields(self.fields, self._names)
        if strict:
            check_tags(self._names, answer_field)
        self._position = {name: index for index, field in enumerate(self.fields) for name in field}
        self._tag = re.compile(f"<(/?)({'|'.join(map(re.escape, self._names))})>")

    def parse(self, text: str, strip: bool = True, last: bool = False) -> SimpleNamespace:
        """Every field name as an attribute, None where the text lacks it: its first value, or the `last`.

        Strictly read, the last occurrence of a field wins. Tags inside another field's value are part of
        that value; they are read as a field only if that field occurs nowhere else.
        """
        if self.strict:
            return self._parse_strictly(text, strip)
        return SimpleNamespace(**{name: find_value(text, name, last) for name in self._names})

    def parse_answer(self, completion: Completion) -> Any:
        """The answer field of the last assistant message that has it, or None."""
        if self.strict:
            if self.answer_field not in self._names:
                raise ValueError(
                    f"no field is named {self.answer_field!r}; give answer_field, one of {self._names}"
                )
            answer = getattr(super().parse_answer(completion), self.answer_field, None)
            return None if answer is None else self.extract_fn(answer)
        if isinstance(completion, str):
            return getattr(self.parse(completion, last=True), self.answer_field, None)
        answers = (
            getattr(self.parse(text), self.answer_field, None) for text in self._all_texts(completion)[::-1]
        )
        return next((answer for answer in answers if answer is not None), None)

    def format(self, /, **values: Any) -> str:
        """The text of these values: one for each field, under any of its names, written under the first."""
        if self.strict:
            return format_elements(self.fields, values)
        blocks = []
        for field in self.fields:
            given = next((values[name] for name in field if name in values), None)
            if given is None:
                raise ValueError(f"give a value for {' | '.join(field)}")
            blocks.append(_block(field[0], str(given)))
        return "\n".join(blocks)

    def get_format_str(self) -> str:
        """The format to show to a model in a prompt; alternatives are separated by a bar."""
        names = (field[0] if len(field) == 1 else f"[ {' | '.join(field)} ]" for field in self.fields)
        return "\n".join(_block(name, "...") for name in names)

    def get_format_reward_func(self) -> FormatReward:
        """verifiers' reward function for the format: the mean over the assistant's messages of 0.2, 0.4 times
        the share of fields that occur, and 0.2 each for beginning with the first and ending with the last."""

        def format_reward_func(completion: Completion) -> float:
            scores = [self._loose_score(text) for text in self._all_texts(completion)]
            return sum(scores) / len(scores) if scores else 0.0

        return format_reward_func

    def _loose_score(self, text: str) -> float:
        parsed = vars(self.parse(text)) if not self.strict else vars(self._parse_strictly(text, True))
        has_value = any(value is not None for value in parsed.values())
        present = [
            field
            for field in self.fields
            if any(parsed[name] is not None or f"<{name}>" in text or f"</{name}>" in text for name in field)
        ]
        stripped = text.strip()
        score = 0.4 * (len(present) / len(self.fields)) if has_value else 0.0
        score += 0.2
        if any(stripped.startswith(f"<{name}>") for name in self.fields[0]):
            score += 0.2
        if any(stripped.endswith(f"</{name}>") for name in self.fields[-1]):
            score += 0.2
        return score

    def _parse_strictly(self, text: str, strip: bool) -> SimpleNamespace:
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


def check_fields(fields: Sequence[tuple[str, ...]], names: Sequence[str]) -> None:
    if not names or not all(fields):
        raise ValueError("an XMLParser needs fields, each with at least one name")
    if not all(isinstance(name, str) for name in names):
        raise TypeError("the name of a field is a text")
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"field names must differ, but {', '.join(repeated)} is given more than once")


def check_tags(names: Sequence[str], answer_field: str) -> None:
    if malformed := [name for name in names if not re.fullmatch(r"[^\W\d][\w.-]*", name)]:
        raise ValueError(f"{malformed[0]!r} cannot be a tag; use letters, digits, '_', '-' and '.'")
    if answer_field not in (*names, "answer"):
        raise ValueError(f"answer_field is {answer_field!r}, but the fields are {', '.join(names)}")


def find_value(text: str, name: str, last: bool) -> str | None:
    """What stands between a tag and the next one that closes it, stripped: the first such, or the last."""
    opening, closing = f"<{name}>", f"</{name}>"
    found: str | None = None
    start = text.find(opening)
    while start >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        found = text[start + len(opening) : end].strip()
        if not last:
            break
        start = text.find(opening, end + len(closing))
    return found


def format_elements(fields: Sequence[tuple[str, ...]], values: Mapping[str, Any]) -> str:
    """The text that is read back as exactly these values, stripped: one value for each field."""
    names = [name for field in fields for name in field]
    if unknown := [name for name in values if name not in names]:
        raise ValueError(f"{unknown[0]!r} is not a field; the fields are {', '.join(names)}")
    blocks = []
    for field in fields:
        given = [name for name in field if values.get(name) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one value for {' | '.join(field)}, not {len(given)}")
        name, value = given[0], str(values[given[0]])
        if f"<{name}>" in value or f"</{name}>" in value:
            raise ValueError(f"the value of {name} contains its own tag, so it could not be read back")
        blocks.append(_block(name, value))
    return "\n".join(blocks)


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
