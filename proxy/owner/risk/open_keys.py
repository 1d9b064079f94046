"""The files of two flags: where people usually are (`--prior`), and which counts an attacker knows (`--attacker`)."""

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from planner.catalog.catalog import Value
from planner.catalog.key_space import format_value

Key = tuple[str, ...]

_MOST_LINES = 200_000  # of a file: more groups than any attacker is worked out for
_NEVER_SEEN = 0.5  # people at a place where the file has none: what was never seen is possible all the same


@dataclass(frozen=True, slots=True)
class Prior:
    """The usual number of people at each place and time.

    `names` are the grouping columns, with the place's column first. `people` maps a key to a number above 0.
    """

    names: tuple[str, ...]
    people: Mapping[Key, float]

    @property
    def times(self) -> tuple[Key, ...]:
        """The distinct combinations of values of the other columns. Without other columns, one empty combination."""
        return tuple(dict.fromkeys(key[1:] for key in self.people))

    @property
    def places(self) -> tuple[str, ...]:
        """The distinct places, which are the values of the first column."""
        return tuple(dict.fromkeys(key[0] for key in self.people))

    def add_places(self, places: Sequence[str]) -> "Prior":
        """Return the prior with further places, where nobody is expected at any time."""
        more = {(place, *time): _NEVER_SEEN for time in self.times for place in places}
        return Prior(self.names, {**more, **self.people})


@dataclass(frozen=True, slots=True)
class OpenKeys:
    """An attacker who knows the counts of some keys. `columns` are the indices of the keys' columns in the prior."""

    name: str
    columns: tuple[int, ...]
    keys: frozenset[Key]

    def knows(self, key: Key) -> bool:
        """Return True if the attacker knows the count of that key."""
        return tuple(key[place] for place in self.columns) in self.keys


@dataclass(frozen=True, slots=True)
class CsvText:
    """The text of a CSV file, with the file's name for error messages."""

    name: str
    text: str

    @staticmethod
    def read(path: Path) -> "CsvText":
        """Read a file. Raise ValueError with a message for the person who named the file."""
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                return CsvText(path.name, file.read())
        except OSError as error:
            raise ValueError(f"{path} cannot be read ({error.strerror})") from None
        except UnicodeDecodeError:
            raise ValueError(f"{path} is no CSV file in UTF-8") from None


def read_prior(file: CsvText) -> Prior:
    """Parse a prior from CSV: columns of a key, the place's column first and the number of people last.

    Raises:
        ValueError: with a message for the file's author.
    """
    header, lines = _read(file)
    columns = header[:-1]
    if not columns or len(set(columns)) != len(columns):
        raise ValueError(f"{file.name} begins with {','.join(header)}; it has to name a place and a number of people")
    people: dict[Key, float] = {}
    for number, line in lines:
        key, text = tuple(line[:-1]), line[-1]
        try:
            usual = float(text)
        except ValueError:
            usual = math.nan
        if not 0 <= usual < math.inf:
            raise ValueError(f"{file.name}, line {number}: {text!r} is no number of people")
        if key in people:
            raise ValueError(f"{file.name}, line {number}: the same group stands there twice")
        people[key] = max(usual, _NEVER_SEEN)
    if not people:
        raise ValueError(f"{file.name} has no group")
    return Prior(columns, people)


def read_open_keys(name: str, file: CsvText, prior: Prior) -> OpenKeys:
    """Parse the keys that an attacker knows from CSV. A file with only a header has none.

    Raises:
        ValueError: with a message for the file's author.
    """
    header, lines = _read(file)
    if not set(header) <= set(prior.names) or len(set(header)) != len(header):
        raise ValueError(f"{file.name} begins with {','.join(header)}; columns are some of {','.join(prior.names)}")
    columns = tuple(prior.names.index(column) for column in header)
    known = {tuple(key[place] for place in columns) for key in prior.people}
    keys = set()
    for number, line in lines:
        if tuple(line) not in known:
            raise ValueError(f"{file.name}, line {number}: {','.join(line)!r} does not stand in the prior")
        keys.add(tuple(line))
    return OpenKeys(name, columns, frozenset(keys))


def make_key_text(key: Sequence[Value]) -> Key:
    """Return a key with its values as text, as the files of known keys have them: each as PostgreSQL prints it."""
    return tuple(map(format_value, key))


def _read(file: CsvText) -> tuple[Key, Iterator[tuple[int, list[str]]]]:
    """Return the header of a file, and an iterator over the numbered rows."""
    try:
        rows = list(_number_rows(csv.reader(StringIO(file.text, newline=""), strict=True), file.name))
    except csv.Error:
        raise ValueError(f"{file.name} is no CSV file in UTF-8") from None
    if not rows:
        raise ValueError(f"{file.name} is empty; its first line names its columns")
    header = tuple(name.strip() for name in rows[0][1])
    for number, row in rows[1:]:
        if len(row) != len(header):
            raise ValueError(f"{file.name}, line {number}: {len(row)} values, and the first line has {len(header)}")
    return header, iter(rows[1:])


def _number_rows(rows: Iterator[list[str]], name: str) -> Iterator[tuple[int, list[str]]]:
    for number, row in enumerate(rows, start=1):
        if number > _MOST_LINES:
            raise ValueError(f"{name} has more than {_MOST_LINES:,} lines")
        if row:
            yield number, row
