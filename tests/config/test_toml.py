"""Where keys stand in a TOML text."""

import tomllib
from collections.abc import Iterator

import pytest

from forewarned.config.key_lines import key_lines
from forewarned.config.mistakes import KeyPath, MistakesError, show_path
from forewarned.config.toml import TomlFile

TRICKY = '''\
# a comment with [brackets] = and "quotes"
title = "a # that is no comment"  # and one that is
a.b . "c.d" = 1
'quoted = key' = 'no \\ escape'
"escaped \\" key" = "\\"]\\\\"
long = """
[not.a.table]
""quoted""\\""" still in it
"""
literal = \'\'\'
[[nor.this]]\'\'\'
dates = [1979-05-27T07:32:00Z, 07:32:00]
floats = [1e3, -inf, 0xf_f] # ]

[table]  # ]
inline = { x = 1, y.z = [ { deep = "}" }, {} ], "w" = {} }
list = [
    "one",  # ,
    # between
    [2, 3],
    """
four""",
]

[table.sub."quoted.part"]
key = true

[[fruits]]
name = "apple"
[fruits.skin]
colour = "red"
[[fruits.seeds]]
count = 1
[[fruits.seeds]]
count = 2

[[fruits]]
name = "pear"
[[fruits.seeds]]
count = 3
'''


def paths(value: object, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Every key and index of a parsed text."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*path, index))


@pytest.mark.parametrize("text", [TRICKY, TRICKY.replace("\n", "\r\n"), "", "\n", "a=1", "[a]"])
def test_every_key_and_element_that_tomllib_finds_has_a_line(text: str) -> None:
    wanted = set(paths(tomllib.loads(text)))

    found = key_lines(text)

    assert set(found) == wanted


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("a", "b", "c.d"), 3),
        (('escaped " key',), 5),
        (("long",), 6),
        (("literal",), 10),
        (("dates", 1), 12),
        (("table",), 15),
        (("table", "inline", "y", "z", 0, "deep"), 16),
        (("table", "list", 0), 18),
        (("table", "list", 1, 1), 20),
        (("table", "list", 2), 21),
        (("table", "sub"), 25),
        (("table", "sub", "quoted.part", "key"), 26),
        (("fruits",), 28),
        (("fruits", 0), 28),
        (("fruits", 0, "skin", "colour"), 31),
        (("fruits", 0, "seeds", 1, "count"), 35),
        (("fruits", 1, "name"), 38),
        (("fruits", 1, "seeds", 0, "count"), 40),
    ],
)
def test_a_key_is_on_the_line_it_was_written_on(path: KeyPath, line: int) -> None:
    assert key_lines(TRICKY)[path] == line


def test_a_missing_key_is_where_it_would_have_been() -> None:
    file = TomlFile.parse("\n[[vms]]\nzone = 1\n", source="a.toml", error=MistakesError)

    assert file.line_of(("vms", 0, "name")) == 2
    assert file.line_of(("location",)) == 1


def test_a_path_is_shown_as_people_write_it() -> None:
    assert show_path(("scale_sets", 0, "tags", "a")) == "scale_sets[0].tags.a"
    assert show_path(()) == ""
