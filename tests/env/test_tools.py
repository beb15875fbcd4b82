"""What an environment author, or a model, would notice about tools."""

import enum
import functools
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.tools import Tool, ToolArgumentsError


class Unit(enum.Enum):
    CELSIUS = "c"
    KELVIN = "k"


class Span(TypedDict):
    start: int
    end: int


@dataclass
class Place:
    """Somewhere."""

    city: str
    zone: int = 0


class Node(msgspec.Struct):
    value: int
    children: list["Node"] = []


def search(query: str, limit: int = 10, order: Literal["new", "old"] = "new") -> str:
    """Search the library.

    Matches whole words only.

    Args:
        query: What to look for.
        limit: How many results to return.

    Returns:
        The results, one per line.
    """
    return f"{query} {limit} {order}"


async def fetch(url: str) -> str:
    """Fetch a page."""
    return url


def postponed(place: "Place", units: "list[Unit]", note: "str | None" = None) -> None: ...


def parameters(function: Callable[..., Any]) -> dict[str, Any]:
    return Tool.of(function).spec.parameters


def complaint(function: Callable[..., Any], raw: Any) -> str:
    with pytest.raises(ToolArgumentsError) as caught:
        Tool.of(function).arguments(raw)
    return str(caught.value)


def test_a_model_sees_the_name_the_docstring_and_the_arguments() -> None:
    tool = Tool.of(search)

    assert tool.name == tool.spec.name == "search"
    assert tool.spec.description == "Search the library.\n\nMatches whole words only."
    assert tool.spec.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for."},
            "limit": {"type": "integer", "description": "How many results to return.", "default": 10},
            "order": {"enum": ["new", "old"], "default": "new"},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_every_common_annotation_has_a_schema() -> None:
    def everything(  # type: ignore[no-untyped-def]
        anything,
        maybe: str | None,
        unit: Unit,
        span: Span,
        place: Place,
        node: Node,
        counts: dict[str, int],
        when: date,
        share: Annotated[float, msgspec.Meta(ge=0, le=1, description="A share.")] = 0.5,
    ) -> None: ...

    schema = parameters(everything)

    assert schema["properties"] == {
        "anything": {},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "unit": {"$ref": "#/$defs/Unit"},
        "span": {"$ref": "#/$defs/Span"},
        "place": {"$ref": "#/$defs/Place"},
        "node": {"$ref": "#/$defs/Node"},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "when": {"type": "string", "format": "date"},
        "share": {"type": "number", "minimum": 0, "maximum": 1, "description": "A share.", "default": 0.5},
    }
    assert set(schema["$defs"]) == {"Unit", "Span", "Place", "Node"}
    assert schema["required"] == ["anything", "maybe", "unit", "span", "place", "node", "counts", "when"]
    json.dumps(schema)


def test_postponed_annotations_are_read_like_any_other() -> None:
    arguments = Tool.of(postponed).arguments('{"place": {"city": "Oslo"}, "units": ["k"]}')

    assert arguments == {"place": Place("Oslo"), "units": [Unit.KELVIN]}


def test_a_default_of_none_admits_none() -> None:
    def find(limit: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013

    assert parameters(find)["properties"]["limit"]["default"] is None
    assert Tool.of(find).arguments('{"limit": null}') == {"limit": None}


def test_a_default_json_cannot_carry_is_not_shown() -> None:
    def find(limit: Any = object(), most: float = float("inf")) -> None: ...  # noqa: B008

    assert parameters(find)["properties"] == {"limit": {}, "most": {"type": "number"}}
    assert parameters(find)["required"] == []


def test_an_enum_default_is_shown_by_its_value() -> None:
    def read(unit: Unit = Unit.KELVIN) -> None: ...

    assert parameters(read)["properties"]["unit"] == {"$ref": "#/$defs/Unit", "default": "k"}


def test_a_function_without_a_docstring_is_still_a_tool() -> None:
    def ping() -> None: ...

    tool = Tool.of(ping)

    assert tool.spec.description == ""
    assert tool.arguments("") == tool.arguments("{}") == tool.arguments("null") == {}


def test_async_functions_are_told_apart() -> None:
    class Caller:
        async def __call__(self, x: int) -> None: ...

    assert Tool.of(fetch).is_async
    assert Tool.of(functools.partial(fetch)).is_async
    assert Tool.of(Caller()).is_async
    assert not Tool.of(search).is_async


def test_a_method_is_offered_without_its_self() -> None:
    class Shelf:
        def take(self, title: "str") -> str:
            """Take a book."""
            return title

    tool = Tool.of(Shelf().take)

    assert (tool.name, tool.spec.description) == ("take", "Take a book.")
    assert list(tool.spec.parameters["properties"]) == ["title"]
    assert tool.function(**tool.arguments({"title": "Emma"})) == "Emma"


def test_a_callable_object_is_named_for_its_class() -> None:
    class Clock:
        """Tells the time."""

        def __call__(self, zone: "int") -> None: ...

    tool = Tool.of(Clock())

    assert (tool.name, tool.spec.description) == ("Clock", "Tells the time.")
    assert tool.spec.parameters["required"] == ["zone"]


def test_what_a_partial_has_bound_is_not_offered() -> None:
    tool = Tool.of(functools.partial(search, limit=3))

    assert (tool.name, tool.spec.description[:6]) == ("search", "Search")
    assert list(tool.spec.parameters["properties"]) == ["query", "order"]
    assert tool.function(**tool.arguments({"query": "x"})) == "x 3 new"


def test_a_wrapped_function_is_offered_as_the_function_it_wraps() -> None:
    @functools.wraps(search)
    def logged(*args: Any, **kwargs: Any) -> str:
        return search(*args, **kwargs)

    assert Tool.of(logged).spec == Tool.of(search).spec
    assert Tool.of(functools.cache(search)).spec == Tool.of(search).spec


def test_a_hidden_argument_is_neither_shown_nor_accepted() -> None:
    def run(code: str, sandbox: "Unimportable") -> None:  # type: ignore[name-defined]  # noqa: F821
        """Run code.

        Args:
            code: What to run.
            sandbox: Where to run it.
        """

    tool = Tool.of(run, hidden=["sandbox"])

    assert tool.spec.parameters["required"] == list(tool.spec.parameters["properties"]) == ["code"]
    assert "sandbox" not in repr(tool.spec)
    assert tool.arguments('{"code": "1"}') == {"code": "1"}
    with pytest.raises(ToolArgumentsError, match="`run` has no argument `sandbox`; its arguments are `code`"):
        tool.arguments('{"code": "1", "sandbox": "mine"}')


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Tool.of(lambda x: x), "plain `def` name"),
        (lambda: Tool.of(search, hidden=["limits"]), "no argument limits to hide; did you mean `limit`?"),
        (lambda: Tool.of(_starred), r"tool _starred takes \*rest"),
        (lambda: Tool.of(_keyworded), r"tool _keyworded takes \*\*rest"),
        (lambda: Tool.of(_positional), "takes x by position only"),
        (lambda: Tool.of(_unresolved), "the annotation of x, 'Nowhere', cannot be read"),
        (lambda: Tool.of(_foreign), "x is annotated <class 'object'>, which JSON cannot carry"),
        (lambda: Tool.of(dict), "no signature"),
        (lambda: Tool.of(3), "3 is not a function"),  # type: ignore[arg-type]
    ],
)
def test_what_a_model_could_not_call_is_refused_when_the_tool_is_made(
    make: Callable[[], Tool], complaint: str
) -> None:
    with pytest.raises(TypeError, match=complaint):
        make()


def _starred(*rest: int) -> None: ...
def _keyworded(**rest: int) -> None: ...
def _positional(x: int, /) -> None: ...
def _unresolved(x: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821
def _foreign(y: int, x: object) -> None: ...


def test_arguments_are_converted_and_defaults_left_to_the_function() -> None:
    assert Tool.of(search).arguments('{"query": "x", "limit": "3"}') == {"query": "x", "limit": 3}
    assert Tool.of(search).arguments({"query": "null", "limit": 3.0}) == {"query": "null", "limit": 3}


def test_text_stays_text_where_text_is_allowed() -> None:
    def note(value: int | str, maybe: str | None, anything: Any) -> None: ...

    sent = {"value": "3", "maybe": "null", "anything": "true"}

    assert Tool.of(note).arguments(sent) == sent


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ('{"qurey": "x"}', "`search` has no argument `qurey`; did you mean `query`?"),
        ('{"zzz": 1}', "`search` has no argument `zzz`; its arguments are `query`, `limit`, `order`."),
        ("{}", "`search` also needs `query` (string)."),
        ('{"query": 5}', "`query` of `search` is wrong: expected `str`, got `int`; 5 was sent."),
        (
            '{"query": "x", "order": "best"}',
            '`order` of `search` is wrong: expected one of "new", "old"; "best" was sent.',
        ),
        ("[1]", "The arguments of `search` must be one JSON object, but [1] was sent."),
    ],
)
def test_a_wrong_call_is_answered_with_one_sentence_for_the_model(raw: str, sentence: str) -> None:
    assert complaint(search, raw) == sentence


def test_a_mistake_inside_an_argument_is_located() -> None:
    def plot(points: list[Place], unit: Unit | None) -> None: ...

    wrong = '{"points": [{"city": "Oslo", "zone": "x"}], "unit": "k"}'

    assert complaint(plot, wrong) == (
        "`points[0].zone` of `plot` is wrong: expected `int`, got `str`; "
        '[{"city":"Oslo","zone":"x"}] was sent as `points`.'
    )
    assert complaint(plot, '{"points": [], "unit": "f"}') == (
        '`unit` of `plot` is wrong: expected one of "c", "k", null; "f" was sent.'
    )
    assert complaint(plot, "{}") == '`plot` also needs `points` (array), `unit` (one of "c", "k", null).'


@pytest.mark.parametrize("raw", ['{"query": ', "{'query': 1}", "[" * 100_000, "\ud800", '{"limit": NaN}'])
def test_broken_json_is_explained(raw: str) -> None:
    assert complaint(search, raw).startswith("The arguments of `search` are not valid JSON (")


def test_a_complaint_stays_short_whatever_was_sent() -> None:
    assert len(complaint(search, {"query": ["x" * 10_000]})) < 200
    assert len(complaint(search, {"x" * 10_000: 1})) < 200


TOOL = Tool.of(postponed)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
sent = st.dictionaries(st.sampled_from(["place", "units", "note"]) | st.text(max_size=5), json_values)


@given(st.text() | sent.map(json.dumps) | sent)
def test_whatever_a_model_sends_is_taken_or_refused_politely(raw: Any) -> None:
    with suppress(ToolArgumentsError):
        arguments = TOOL.arguments(raw)
        assert isinstance(arguments["place"], Place)


@given(st.text(), st.integers(-(2**60), 2**60), st.sampled_from(["new", "old"]))
def test_a_right_call_arrives_unchanged(query: str, limit: int, order: str) -> None:
    arguments = {"query": query, "limit": limit, "order": order}

    assert Tool.of(search).arguments(json.dumps(arguments)) == arguments
