"""A TOML file as a user wrote it: every complaint names the line it is about."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.config.toml_file import FileProblems, KeyPath, Locator, read_toml
from proctor.errors import ConfigError, FileError

T = TypeVar("T")

EVERYTHING = r'''# a comment with a "quote and a [bracket
title = "one"   # [not] = "a key"
"quoted key" = 'single'
'literal.key'."esc\"aped\u0041" = 1
dotted . deep.er = true
long = """
first = "no key"
[[nor]] a table \""" still \
  inside"""
literal = \'\'\'
x = 1
it''s\'\'\'
ending = """with quotes"""""
numbers = [
  1, 2,   # three follows ]
  3,

  [4,
   5],
  { a = 1, "b c".d = [6,
    7] },
]
when = 1979-05-27 07:32:00
inline = { x = "}", y = { z = [ ] } }
empty = ""

[table]
a = 1
[table.sub.subsub]
b = 2
[[rows]]   # the first
name = "first"
[rows.args]
hard = true
[[rows.inner]]
[[rows]]   # the second
name = "second"
[[rows.inner]]
c = 1
[[rows.inner]]
  [rows.inner.deep]
  d = 1
[table.sub]
e = 3
'''.replace(r"\'\'\'", "'''")


def of(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "x.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def line_of(text: str, part: str) -> int:
    """The line that begins with a text."""
    (line,) = [n for n, line in enumerate(text.splitlines(), 1) if line.strip().startswith(part)]
    return line


@pytest.mark.parametrize(
    ("where", "part"),
    [
        (("title",), "title"),
        (("quoted key",), '"quoted key"'),
        (("literal.key", 'esc"apedA'), "'literal.key'"),
        (("dotted", "deep", "er"), "dotted"),
        (("long",), "long"),
        (("literal",), "literal = "),
        (("ending",), "ending"),
        (("numbers",), "numbers"),
        (("numbers", 1), "1, 2,"),
        (("numbers", 2), "3,"),
        (("numbers", 3), "[4,"),
        (("numbers", 3, 1), "5],"),
        (("numbers", 4, "b c", "d", 0), "{ a = 1"),
        (("numbers", 4, "b c", "d", 1), "7] },"),
        (("when",), "when"),
        (("inline", "y", "z"), "inline"),
        (("empty",), "empty"),
        (("table",), "[table]"),
        (("table", "sub"), "[table.sub]"),
        (("table", "sub", "subsub", "b"), "b = 2"),
        (("table", "sub", "e"), "e = 3"),
        (("rows",), "[[rows]]   # the first"),
        (("rows", 0, "args"), "[rows.args]"),
        (("rows", 0, "args", "hard"), "hard"),
        (("rows", 1), "[[rows]]   # the second"),
        (("rows", 1, "name"), 'name = "second"'),
        (("rows", 1, "inner", 0, "c"), "c = 1"),
        (("rows", 1, "inner", 1, "deep", "d"), "d = 1"),
    ],
)
def test_every_key_knows_its_line(tmp_path: Path, where: KeyPath, part: str) -> None:
    assert read_toml(of(tmp_path, EVERYTHING)).line_of(where) == line_of(EVERYTHING, part)


def test_what_is_not_there_is_looked_for_around_its_place(tmp_path: Path) -> None:
    file = read_toml(of(tmp_path, "\n[[eval]]\n[eval.env_args]\n"))

    assert file.line_of(("eval", 0, "env_args", "difficulty")) == 3
    assert file.line_of(("eval", 0, "missing")) == 2
    assert file.line_of(("nothing",)) == 1


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_other_line_ends_and_a_byte_order_mark_are_read(tmp_path: Path, line_end: str) -> None:
    text = line_end.join(["", "a = 1", 'b = """', "x", '"""', "c = 2"])

    file = read_toml(of(tmp_path, b"\xef\xbb\xbf" + text.encode()))

    assert file.data == {"a": 1, "b": "x\n", "c": 2}
    assert [file.line_of((name,)) for name in "abc"] == [2, 3, 6]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a = 1\nb = = 2\n", r"x.toml:2: this is not valid TOML: Invalid value\.$"),
        ("a = 1\na = 2\n", r"x.toml:2: this is not valid TOML: Cannot overwrite a value\.$"),
        ("a = 1\n\nb = [1,\n", r"x.toml:3: this is not valid TOML: "),
        ("a = 1\nb = 'ab\n", r"x.toml:2: this is not valid TOML: "),
        (b"a = 1\nb = '\xff'\n", r"x.toml:2: the file is not text in UTF-8"),
        ("a = " + "[" * 100_000, r"x.toml:1: is nested too deeply|x.toml:1: this is not valid TOML"),
        ("a = " + "9" * 5000, r"x.toml:1: this is not valid TOML: "),
    ],
)
def test_a_file_that_cannot_be_read_says_where_it_breaks(
    tmp_path: Path, content: str | bytes, sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence) as raised:
        read_toml(of(tmp_path, content))

    assert "\n" not in str(raised.value)


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere.toml:1: the file cannot be read: No such file"):
        read_toml(tmp_path / "nowhere.toml")
    with pytest.raises(ConfigError, match=r":1: the file cannot be read: Is a directory"):
        read_toml(tmp_path)


def test_all_findings_are_told_together_by_line(tmp_path: Path) -> None:
    findings = FileProblems(read_toml(of(tmp_path, "a = 1\nb = 2\n")))
    findings.add(("b",), "second.")
    findings.add(("a",), "first.")
    findings.add(("a",), "first.")

    with pytest.raises(FileError) as raised:
        findings.raise_any()

    path = tmp_path / "x.toml"
    assert raised.value.problems == (f"{path}:1: first.", f"{path}:2: second.")


# Any document


KEYS = st.one_of(
    st.text("abz09_-", min_size=1, max_size=6),
    st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=6),
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=12)
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.datetimes(),
    st.dates(),
    st.times(),
    TEXTS,
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


class Writer:
    """Writes a document in one of the many ways TOML has for it, noting where everything went."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.text = ""
        self.lines: dict[KeyPath, int] = {}

    @property
    def line(self) -> int:
        return self.text.count("\n") + 1

    def draw(self, strategy: st.SearchStrategy[T]) -> T:
        return self.data.draw(strategy)

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def document(self) -> str:
        names = self.draw(st.lists(KEYS, unique=True, max_size=6))
        shapes = [self.pick("pair", "pair", "dotted", "table", "rows") for _ in names]
        for name, shape in sorted(
            zip(names, shapes, strict=True), key=lambda each: each[1] in ("table", "rows")
        ):
            self.filler()
            if shape == "rows":
                for number in range(self.draw(st.integers(1, 3))):
                    self.table((name, number), "[[", "]]", self.key(name))
            elif shape == "table":
                self.table((name,), "[", "]", self.key(name))
            else:
                self.pair((), [name] if shape == "pair" else [name, self.draw(KEYS)])
        return self.text

    def table(self, where: KeyPath, opening: str, closing: str, name: str) -> None:
        self.lines[where] = self.line
        space = self.pick("", " ", "\t")
        self.text += f"{self.pick('', '  ')}{opening}{space}{name}{space}{closing}"
        self.end()
        names = self.draw(st.lists(KEYS, unique=True, max_size=4))
        for inner in names[1:]:
            self.filler()
            self.pair(where, [inner])
        if names and self.pick("flat", "deep") == "deep":
            self.filler()
            self.table((*where, names[0]), "[", "]", f"{name}.{self.key(names[0])}")

    def pair(self, where: KeyPath, names: list[str]) -> None:
        for name in names:
            where = (*where, name)
            self.lines[where] = self.line
        dot = self.pick(".", " . ")
        self.text += dot.join(self.key(name) for name in names) + self.pick("=", " = ", "\t=")
        self.value(where, self.draw(VALUES))
        self.end()

    def value(self, where: KeyPath, value: Any) -> None:
        if isinstance(value, list):
            self.array(where, value)
        elif isinstance(value, dict):
            self.inline(where, value)
        elif isinstance(value, str):
            self.text += self.string(value)
        elif isinstance(value, bool):
            self.text += str(value).lower()
        elif isinstance(value, int | float):
            self.text += repr(value)
        else:
            self.text += value.isoformat(*self.separator(value))

    def separator(self, value: Any) -> tuple[str, ...]:
        return (self.pick(" ", "T"),) if hasattr(value, "hour") and hasattr(value, "year") else ()

    def array(self, where: KeyPath, values: list[Any]) -> None:
        self.text += "["
        for number, value in enumerate(values):
            self.gap()
            self.lines[(*where, number)] = self.line
            self.value((*where, number), value)
            self.gap()
            if number < len(values) - 1 or self.draw(st.booleans()):
                self.text += ","
        self.gap()
        self.text += "]"

    def inline(self, where: KeyPath, table: dict[str, Any]) -> None:
        self.text += "{"
        for number, (name, value) in enumerate(table.items()):
            self.text += ", " if number else self.pick("", " ")
            self.lines[(*where, name)] = self.line
            self.text += f"{self.key(name)} = "
            self.value((*where, name), value)
        self.text += self.pick("", " ") + "}"

    def key(self, name: str) -> str:
        if name.isascii() and name and all(letter.isalnum() or letter in "_-" for letter in name):
            return self.pick(name, f'"{name}"', f"'{name}'")
        return basic(name)

    def string(self, text: str) -> str:
        spellings = [basic(text), '"""' + self.pick("", "\n") + escaped(text, keep="\n") + '"""']
        if text.isprintable() and "'" not in text:
            spellings += [f"'{text}'", f"'''\n{text}'''", f"'''it's {text}'''"]
        return self.pick(*spellings)

    def gap(self) -> None:
        self.text += self.pick("", "", " ", "\n", " # ] } ' \"\n", "\n\n\t")

    def filler(self) -> None:
        self.text += self.pick("", "", "\n", "# [[x]] = '''\n", "  \n")

    def end(self) -> None:
        self.text += self.pick("\n", '  # a = """\n', "\n\n")


def basic(text: str) -> str:
    return f'"{escaped(text)}"'


def escaped(text: str, keep: str = "") -> str:
    return "".join(
        letter
        if letter in keep or (letter.isprintable() and letter not in '"\\')
        else f"\\U{ord(letter):08x}"
        for letter in text
    )


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_in_any_document_every_value_is_found_on_its_line(data: st.DataObject) -> None:
    writer = Writer(data)
    text = writer.document()

    document = tomllib.loads(text)  # what was written is TOML
    found = Locator(text).locate_keys()

    assert {where: found[where] for where in writer.lines} == writer.lines
    assert leaves(document) <= found.keys()


def leaves(value: Any, where: KeyPath = ()) -> set[KeyPath]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = {leaf for key, each in inner for leaf in leaves(each, (*where, key))}
    return found or ({where} if where else set())
