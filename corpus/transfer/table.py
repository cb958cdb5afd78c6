"""What one table of a bundle can do: be checked, be written, be read out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ClassVar, Generic, TypeVar

from corpus.schema import canonical_json
from corpus.schema.fields import Row

R = TypeVar("R", bound=Row)
T = TypeVar("T")
Key = tuple[Any, ...]
# Field, value, reason.
Problem = tuple[str, object, str]
# The same, with the line before it.
LateProblem = tuple[int | None, str, object, str]

CHUNK = 500


@dataclass(frozen=True)
class Scope:
    """Which collections to read out; None means everything that there is."""

    collections: tuple[str, ...] | None = None

    @property
    def everything(self) -> bool:
        """Tell whether nothing is left out."""
        return self.collections is None


@dataclass
class Changes:
    """How many rows of a table are new, and how many stand there already."""

    new: int = 0
    unchanged: int = 0
    drafts: int = 0


class Table(Generic[R]):
    """One table: its rows, its natural key, and its way into and out of the database."""

    name: ClassVar[str]
    key: ClassVar[tuple[str, ...]]
    row: type[R]

    def key_of(self, row: R) -> Key:
        """Return the natural key of a row."""
        return tuple(getattr(row, part) for part in self.key)

    def stored(self, rows: Sequence[R]) -> Mapping[Key, dict[str, Any]]:
        """Return those of the rows that the database has, as it would write them out."""
        raise NotImplementedError

    def problems(self, row: R, line: int) -> Iterator[Problem]:
        """Yield what is wrong with a new row beyond its own fields."""
        yield from ()

    def admit(self, row: R, line: int) -> None:
        """Remember a new row, for those that refer to it."""

    def mention(self, raw: dict[str, Any], line: int) -> None:
        """Remember a refused row, so that what refers to it is not refused for that."""

    def is_new(self, row: R, stored: dict[str, Any]) -> bool:
        """Tell whether a row that differs from the stored one is written beside it."""
        return False

    def settle(self, row: R, stored: dict[str, Any]) -> Iterator[Problem]:
        """Yield how a row differs from the stored one under its key."""
        yield from differences(row.model_dump(), stored)

    def finish(self) -> Iterator[LateProblem]:
        """Yield what can be told only after the last row of all tables."""
        yield from ()

    def write(self, rows: Callable[[], Iterator[list[R]]]) -> None:
        """Insert the new rows; they can be read more than once."""
        raise NotImplementedError

    def complete(self) -> Iterator[LateProblem]:
        """Take the last step, once every table is written; yield what turned out wrong."""
        yield from ()

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield the rows of the database, sorted by the natural key."""
        raise NotImplementedError


@dataclass
class Seen:
    """The keys that a file has shown, each with its line; a key is kept as its hash."""

    lines: dict[int, int] = field(default_factory=dict)

    def first(self, key: Key, line: int) -> int | None:
        """Return the line that had the key before, or None and remember this one."""
        earlier = self.lines.setdefault(hash(key), line)
        return earlier if earlier != line else None


def differences(row: dict[str, Any], stored: dict[str, Any]) -> Iterator[Problem]:
    """Yield one problem for every field in which a row is not the stored one."""
    for name, value in row.items():
        if canonical_json(value) != canonical_json(stored[name]):
            yield name, value, f"the database has other content under this key: {name} differs"


def written(pk: int | None) -> int:
    """Return a primary key that must be there by now: what is referred to is written first."""
    if pk is None:
        raise LookupError("a row was to be written before the row that it refers to")
    return pk


def in_chunks(items: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """Yield the items in lists of a bounded size."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
