"""Hash what Python objects do: their code, and the code and data of the same author that it refers to.

Comments, line numbers and places in memory do not count. Code of others counts by its name: Proctor's, the
standard library's, and with its version, where it tells one, that of installed packages. Knows nothing of
what the objects are for.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import sys
import types
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
OWN = __name__.partition(".")[0]
DIGITS = 16
SKIPPED = frozenset({"__dict__", "__weakref__", "__module__", "__qualname__", "__firstlineno__", "__doc__"})


def hash_code(*objects: object, without: Collection[str] = ()) -> str:
    """Equal for objects that do the same; attributes called as in `without` do not count."""
    hasher = CodeHasher(frozenset(without))
    for each in objects:
        hasher.visit(each)
    return hasher.digest()


class CodeHasher:
    """Walks over objects, each once, and takes note of what makes a difference."""

    def __init__(self, without: frozenset[str]) -> None:
        self._hash = hashlib.sha256()
        self._without = without
        self._met: dict[int, object] = {}
        """By id; held, so that no id is used again."""

    def digest(self) -> str:
        return self._hash.hexdigest()[:DIGITS]

    def note(self, *parts: object) -> None:
        for part in parts:
            self._hash.update(f"{part}\0".encode(errors="backslashreplace"))

    def visit(self, value: Any) -> None:
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
            self.note(type(value).__name__, repr(value))
        elif id(value) in self._met:
            self.note("again")
        else:
            self._met[id(value)] = value
            self._visit_object(value)

    def _visit_object(self, value: Any) -> None:
        if isinstance(value, types.MethodType):
            self._visit_method(value)
        elif isinstance(value, types.FunctionType):
            self._visit_function(value)
        elif isinstance(value, types.CodeType):
            self._visit_code(value)
        elif isinstance(value, type):
            self._visit_class(value)
        elif isinstance(value, types.ModuleType):
            self.note("module", *describe_module(value.__name__))
        elif isinstance(value, functools.partial):
            self._visit_all("partial", (value.func, value.args, value.keywords))
        elif isinstance(value, Mapping):
            self._visit_mapping("mapping", value)
        elif isinstance(value, (set, frozenset)):
            self.note("set", *sorted(hash_code(item) for item in value))
        elif isinstance(value, (list, tuple)):
            self._visit_all("sequence", value)
        elif isinstance(value, (property, staticmethod, classmethod, functools.cached_property)):
            self._visit_all(type(value).__name__, (unwrap(value),))
        else:
            self._visit_instance(value)

    def _visit_all(self, kind: str, values: Iterable[Any]) -> None:
        self.note(kind)
        for each in values:
            self.visit(each)
        self.note("end")

    def _visit_mapping(self, kind: str, values: Mapping[Any, Any]) -> None:
        self.note(kind)
        for name in sorted(values, key=repr):
            if name not in self._without:
                self.note(repr(name))
                self.visit(values[name])
        self.note("end")

    def _visit_method(self, method: types.MethodType) -> None:
        """The function, and the methods of the same object that it names; not the object."""
        self.visit(method.__func__)
        code = getattr(method.__func__, "__code__", None)
        for name in sorted(set(code.co_names)) if code is not None else ():
            other = inspect.getattr_static(type(method.__self__), name, None)
            if isinstance(other, types.FunctionType):
                self.visit(other)

    def _visit_function(self, function: types.FunctionType) -> None:
        self.note("function", function.__qualname__)
        if is_foreign(function.__module__):
            self.note(*describe_module(function.__module__))
            return
        self.visit(function.__code__)
        self.visit(function.__defaults__)
        self.visit(function.__kwdefaults__)
        for cell in function.__closure__ or ():
            try:
                self.visit(cell.cell_contents)
            except ValueError:  # not filled yet
                self.note("empty")
        for name in sorted(names_in(function.__code__)):
            if name in function.__globals__ and name not in self._without:
                self.note(name)
                self.visit(function.__globals__[name])

    def _visit_code(self, code: types.CodeType) -> None:
        self.note("code", code.co_code.hex(), code.co_names, code.co_varnames, code.co_argcount)
        self._visit_all("constants", code.co_consts)

    def _visit_class(self, kind: type) -> None:
        self.note("class", kind.__qualname__)
        if is_foreign(kind.__module__):
            self.note(*describe_module(kind.__module__))
            return
        self._visit_all("bases", kind.__bases__)
        body = {name: value for name, value in vars(kind).items() if name not in SKIPPED}
        self._visit_mapping("body", body)

    def _visit_instance(self, value: Any) -> None:
        self.visit(type(value))
        self.note("again")  # whether its class was met before or not
        if is_dataclass(value):
            names = [field.name for field in fields(value)]
            self._visit_mapping("fields", {name: getattr(value, name, None) for name in names})
        elif hasattr(value, "__struct_fields__"):
            names = value.__struct_fields__
            self._visit_mapping("fields", {name: getattr(value, name) for name in names})
        elif isinstance(value, re.Pattern) or not hasattr(value, "__dict__"):
            self.note(plain_repr(value))
        elif is_ours(type(value).__module__) or not is_library(type(value).__module__):
            self._visit_mapping("attributes", vars(value))


def unwrap(value: Any) -> Any:
    """The function behind a property, a static or class method."""
    return next(
        (found for name in ("fget", "__func__", "func") if (found := getattr(value, name, None))), None
    )


def names_in(code: types.CodeType) -> set[str]:
    """The names that a function or any function inside it looks up."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= names_in(constant)
    return found


def is_foreign(module: str | None) -> bool:
    """Whether code is another author's: Proctor's, or a library's."""
    return is_ours(module) or is_library(module)


def is_ours(module: str | None) -> bool:
    return (module or "").partition(".")[0] == OWN


def is_library(module: str | None) -> bool:
    """Whether a module belongs to the standard library or to an installed package."""
    top = (module or "").partition(".")[0]
    if top in sys.stdlib_module_names or top == "builtins":
        return True
    loaded = sys.modules.get(module or "")
    file = getattr(loaded, "__file__", None)
    if loaded is None or hasattr(sys.modules.get(top), "load_environment"):  # an installed environment
        return False
    return file is None or "site-packages" in Path(file).parts


def describe_module(name: str | None) -> tuple[str, str]:
    top = (name or "").partition(".")[0]
    return name or "", "" if top == OWN else str(getattr(sys.modules.get(top), "__version__", ""))


def plain_repr(value: object) -> str:
    try:
        return ADDRESS.sub("", repr(value))
    except Exception:
        return type(value).__name__
