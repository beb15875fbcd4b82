"""The schemas of the API's types: from msgspec, with the docstrings of their fields.

Knows nothing of routes.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, get_origin

import msgspec

REFERENCE = "#/components/schemas/{name}"
Schema = dict[str, Any]


class Schemas:
    """The schemas of some types, and the named ones that they refer to."""

    def __init__(self, kinds: Sequence[Any]) -> None:
        schemas, self.components = msgspec.json.schema_components(kinds, ref_template=REFERENCE)
        self._by_kind = {repr(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
        describe_fields(self.components, list_structs(kinds))

    def of(self, kind: Any) -> Schema:
        return self._by_kind[repr(kind)]

    def reachable(self, roots: Iterable[Schema]) -> set[str]:
        """The names of all components that some schemas refer to, directly or not."""
        found: set[str] = set()
        pending = list(roots)
        while pending:
            for name in list_references(pending.pop()):
                if name not in found:
                    found.add(name)
                    pending.append(self.components[name])
        return found

    def require_all_fields(self, names: Iterable[str], structs: Mapping[str, type[msgspec.Struct]]) -> None:
        """For answers, which always have all fields, unless the type omits defaults."""
        for name in names:
            struct = structs.get(name.partition("_")[0])
            if struct is None or not struct.__struct_config__.omit_defaults:
                component = self.components[name]
                component["required"] = list(component.get("properties", {}))

    def forbid_others(self, names: Iterable[str]) -> None:
        """For requests, whose unknown fields are refused."""
        for name in names:
            self.components[name]["additionalProperties"] = False


def list_references(schema: Any) -> Iterable[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].rpartition("/")[2]
        for value in schema.values():
            yield from list_references(value)
    elif isinstance(schema, (list, tuple)):
        for value in schema:
            yield from list_references(value)


def list_structs(kinds: Sequence[Any]) -> dict[str, type[msgspec.Struct]]:
    """Every struct in some types, by its name."""
    found: dict[str, type[msgspec.Struct]] = {}
    seen: set[str] = set()
    pending: list[Any] = list(msgspec.inspect.multi_type_info(kinds))
    while pending:
        info = pending.pop()
        if isinstance(info, msgspec.inspect.StructType):
            if repr(info.cls) in seen:
                continue
            seen.add(repr(info.cls))
            struct = get_origin(info.cls) or info.cls  # of a generic one
            found[struct.__name__] = struct
            pending += [field.type for field in info.fields]
        pending += [each for name in ("types", "item_types") for each in getattr(info, name, ())]
        pending += [
            getattr(info, name)
            for name in ("item_type", "key_type", "value_type", "type")
            if hasattr(info, name)
        ]
    return found


def describe_fields(components: Mapping[str, Schema], structs: Mapping[str, type[msgspec.Struct]]) -> None:
    for name, struct in structs.items():
        for component in (components[each] for each in components if each.partition("_")[0] == name):
            texts = read_field_texts(struct)
            for field, schema in component.get("properties", {}).items():
                if field in texts:
                    schema["description"] = texts[field]


def read_field_texts(struct: type[msgspec.Struct]) -> dict[str, str]:
    """The text that stands below each field of a class, its bases' included."""
    texts: dict[str, str] = {}
    for each in reversed(struct.__mro__):
        if issubclass(each, msgspec.Struct) and each is not msgspec.Struct:
            [node] = ast.parse(textwrap.dedent(inspect.getsource(each))).body
            assert isinstance(node, ast.ClassDef)
            texts |= read_texts_below(node.body)
    return texts


def read_texts_below(body: Sequence[ast.stmt]) -> dict[str, str]:
    texts = {}
    for field, after in pairwise(body):
        match field, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = re.sub(r"\bNone\b", "null", " ".join(text.split()))
    return texts
