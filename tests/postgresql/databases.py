"""Databases for tests, each a copy of one that has the store's tables already."""

import contextlib
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import psycopg

_TEMPLATE: Final = "template"


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """One test's own: no other test has been in it."""

    url: str
    """As an operator would write it in the setting `store`."""
    name: str

    # Any: columns are of the types that the query gives them.
    def ask(self, query: str, *parameters: object) -> list[Any]:
        """Run one statement in a transaction of its own; its rows, or none."""
        return _ask(self.url, query, *parameters)

    def connect(self, *, autocommit: bool = False) -> "psycopg.Connection[Any]":
        """For a test that holds a transaction open, or runs two at once. `with` closes it."""
        return psycopg.connect(self.url, autocommit=autocommit, prepare_threshold=None)


class Databases:
    """Makes databases on one server, which it reaches as a superuser at `url`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._numbers = itertools.count(1)
        # On a server that others use as well, as another worker of this run does.
        self._mark = f"forewarned_test_{os.getpid()}"

    @contextlib.contextmanager
    def template(self) -> Iterator[Database]:
        """The database that the others are copies of. Nobody may be connected while one is made."""
        # As most servers out there sort: a listing that forgot to ask for byte order shows itself.
        sorting = "LOCALE_PROVIDER icu ICU_LOCALE 'en-US'" if self._version >= 150_000 else ""
        with self._made(_TEMPLATE, f"TEMPLATE template0 {sorting}") as made:
            yield made

    @contextlib.contextmanager
    def copy(self, template: Database) -> Iterator[Database]:
        # By its files: through the log, which no one reads here, takes half as long again.
        strategy = "STRATEGY file_copy" if self._version >= 150_000 else ""
        with self._made(str(next(self._numbers)), f"TEMPLATE {template.name} {strategy}") as made:
            yield made

    @contextlib.contextmanager
    def empty(self) -> Iterator[Database]:
        """Without a single table."""
        with self._made(str(next(self._numbers)), "TEMPLATE template0") as made:
            yield made

    @contextlib.contextmanager
    def _made(self, name: str, how: str) -> Iterator[Database]:
        full = f"{self._mark}_{name}"
        _ask(self._url, f"CREATE DATABASE {full} {how}")
        try:
            yield Database(url=_with_database(self._url, full), name=full)
        finally:
            _ask(self._url, f"DROP DATABASE {full} WITH (FORCE)")

    @cached_property
    def _version(self) -> int:
        return int(_ask(self._url, "SHOW server_version_num")[0][0])


def _with_database(url: str, name: str) -> str:
    before, question, parameters = url.partition("?")
    server = before.rpartition("/")[0] if before.count("/") > 2 else before
    return f"{server}/{name}{question}{parameters}"


def _ask(url: str, query: str, *parameters: object) -> list[Any]:
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
        done = connection.execute(query.encode(), parameters or None)
        return done.fetchall() if done.description is not None else []
