"""Steps from rows of one table to rows of another, by foreign keys, or by names if the source declares none.

`orders.customer_id` leads to `customers.customer_id` or `customers.id`, `lineitem.l_orderkey` to `orders.o_orderkey`. A
table's own key contains its name, in the singular or the plural. Other tables use the same word for it. Types are
equal. No row is read, so that a step by names is a guess, and its owner has to confirm it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from planner.catalog.catalog import SqlType
from planner.catalog.relation_names import ForeignKey, RelationIdentity
from planner.catalog.sql_types import SourceColumn, read_sql_type
from planner.policy.identifiers import ID_WORDS, NUMBER_WORDS, is_identifier, names_person, split_words

_KEY_TYPES = frozenset({SqlType.INTEGER, SqlType.TEXT, SqlType.UUID})
_SUFFIXES = ID_WORDS | NUMBER_WORDS
_COMPOUND = re.compile(r"(.{3,}?)_?(id|uuid|guid|key|nummer|nr)")  # orderkey; of fewer letters are "paid", "grid"
_OF_TABLES = frozenset({"dim", "fact", "tbl", "tab", "stg", "raw", "src", "d", "f", "t", "v"})
_SHORT = {
    "cust": "customer",
    "emp": "employee",
    "pat": "patient",
    "supp": "supplier",
    "prod": "product",
    "dept": "department",
    "acct": "account",
    "cat": "category",
    "org": "organization",
    "adm": "admission",
    "enc": "encounter",
    "inv": "invoice",
    "loc": "location",
}
_SINGULARS = {"people": "person", "children": "child"}
_LONGEST_PREFIX = 3  # letters that stand before all columns of a table: l_ of lineitem
_PLURAL_ENDINGS = ("s", "es", "n", "en", "e")  # of English and German


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table as the source's schema and catalogue describe it. Foreign keys name tables as the policy does."""

    columns: tuple[SourceColumn, ...]
    identity: RelationIdentity | None = None
    foreign_keys: tuple[ForeignKey, ...] = ()

    @property
    def compound_keys(self) -> frozenset[frozenset[str]]:
        """Return the sets of columns that a constraint keeps unique together."""
        return frozenset() if self.identity is None else self.identity.keys

    def keeps_unique(self, columns: Sequence[str]) -> bool:
        """Return True if a unique constraint covers some of these columns."""
        return self.identity is not None and self.identity.has_key(columns)


@dataclass(frozen=True, slots=True)
class KeyStep:
    """A step from the rows of a table to rows of `table` whose `reached_columns` have the values of `columns`.

    `is_declared`: by a foreign key. `is_unique`: a constraint of the source says that there is at most one such row.
    """

    columns: tuple[str, ...]
    table: str
    reached_columns: tuple[str, ...]
    is_declared: bool
    is_unique: bool


@dataclass(frozen=True, slots=True)
class _Key:
    """A column whose name is split into `identified_word` and `suffix`.

    `identified_word` is what it identifies, empty if that is its own table. `suffix` is the word that makes it an
    identifier.
    """

    column: SourceColumn
    identified_word: str
    suffix: str

    def matches(self, other: "_Key") -> bool:
        """Return True if the types are equal and both names have matching suffixes."""
        same_word = self.suffix == other.suffix or (not self.suffix and other.suffix in ID_WORDS)
        return same_word and read_sql_type(self.column.declared) is read_sql_type(other.column.declared)


@dataclass(frozen=True, slots=True)
class KeyedTable:
    """A table and what its names suggest: the possible words for a row, and the columns that identify rows.

    `columns` have types that keys have. `keys` are those of them that look like identifiers, and `identifying_keys`
    are the keys that identify the table's own rows. `person_columns` have names that mean people.
    """

    name: str
    source: SourceTable
    row_names: frozenset[str]
    columns: tuple[_Key, ...]
    keys: tuple[_Key, ...]
    identifying_keys: tuple[_Key, ...]
    person_columns: frozenset[str]

    @property
    def own_keys(self) -> tuple[str, ...]:
        """Return the columns that identify the table's rows by their names: `patients.patient_id`, `orders.id`."""
        return tuple(key.column.name for key in self.identifying_keys)

    def describe_key(self, name: str) -> str:
        """Return the words for the thing that a column identifies, without the prefix of all the table's columns."""
        named = next((key.identified_word for key in self.columns if key.column.name == name), name)
        return named or min(self.row_names, key=len)

    def list_targets(self, key: _Key) -> list[_Key]:
        """Return the columns to which another table's column may lead, the likeliest first."""
        own = [there for there in self.identifying_keys if key.identified_word in self.row_names and key.matches(there)]
        same = [
            there
            for there in self.keys
            if there not in own and key.identified_word and there.identified_word == key.identified_word
        ]
        unique = [there for there in same if key.matches(there) and self.source.keeps_unique([there.column.name])]
        return sorted(
            [*own, *unique], key=lambda one: (not self.source.keeps_unique([one.column.name]), not one.identified_word)
        )

    def find_equal(self, there: _Key) -> _Key | None:
        """Return the column with the same name as another table's column, ignoring the prefixes of both tables."""
        alike = (
            key for key in self.columns if (key.identified_word, key.suffix) == (there.identified_word, there.suffix)
        )
        return next((key for key in alike if key.matches(there)), None)

    def guess_steps(self, other: "KeyedTable") -> Iterator[KeyStep]:
        """Yield the steps to another table that names suggest.

        They use its keys of several columns, its own key, or a column that is unique there.
        """
        led = {column for key in self.source.foreign_keys for column in key.columns}
        leading = [key for key in self.keys if key.column.name not in {*led, *self.own_keys}]
        compound = sorted(tuple(sorted(key)) for key in other.source.compound_keys)
        yield from (step for columns in compound for step in self._follow_compound(columns, other, leading))
        held = {column for columns in compound for column in columns}
        for key in leading:
            for there in other.list_targets(key)[:1]:
                name = there.column.name
                unique = other.source.keeps_unique([name])
                if unique or name not in held:  # else the catalogue has it as a part of a key only
                    yield KeyStep((key.column.name,), other.name, (name,), is_declared=False, is_unique=unique)
                if not unique and name not in held:
                    yield from self._add_shared_identifiers(key, there, other, leading)

    def _follow_compound(
        self, columns: Sequence[str], other: "KeyedTable", leading: Sequence[_Key]
    ) -> Iterator[KeyStep]:
        reached = [key for key in other.columns if key.column.name in columns]
        equal = [key for there in reached if (key := self.find_equal(there)) is not None]
        if len(equal) == len(columns) and any(key in leading for key in equal):
            names = tuple(key.column.name for key in equal)
            yield KeyStep(
                names, other.name, tuple(key.column.name for key in reached), is_declared=False, is_unique=True
            )

    def _add_shared_identifiers(
        self, key: _Key, there: _Key, other: "KeyedTable", leading: Sequence[_Key]
    ) -> Iterator[KeyStep]:
        """Yield a step that includes the other identifiers of both tables.

        Orders may be numbered separately in each shop.
        """
        further = [one for one in other.keys if one.column.name not in other.own_keys]
        shared = [(one, equal) for one in further if (equal := self.find_equal(one)) in leading and equal is not key]
        if shared:
            columns = [*(equal.column.name for _, equal in shared if equal is not None), key.column.name]
            reached = [*(one.column.name for one, _ in shared), there.column.name]
            yield KeyStep(tuple(columns), other.name, tuple(reached), is_declared=False, is_unique=False)


def read_keys(tables: Mapping[str, SourceTable]) -> dict[str, KeyedTable]:
    """Return the tables with the keys that their names suggest."""
    split = {name: split_words(name) or [name] for name in tables}
    first = {words[0] for words in split.values()}
    shared = first if len(first) == 1 and len(split) > 1 else set()
    found = {}
    for name, table in tables.items():
        words = split[name]
        bare = words[1:] if len(words) > 1 and words[0] in _OF_TABLES | shared else words
        row_names = _find_singulars(bare)
        columns = _read_columns(table, row_names)
        keys = tuple(key for key in columns if key.suffix or is_identifier(key.column))
        called = [
            key
            for key in keys
            if key.identified_word in row_names or (not key.identified_word and key.suffix in ID_WORDS)
        ]
        own = tuple(key for key in called if key.suffix) or tuple(called)
        told = frozenset(column.name for column in table.columns if names_person(column))
        found[name] = KeyedTable(name, table, row_names, columns, keys, own, told)
    return found


def find_steps(tables: Mapping[str, KeyedTable]) -> dict[str, tuple[KeyStep, ...]]:
    """Return the steps from each table to others: first the declared ones, then those that names suggest.

    A column of a foreign key gets no suggested step.
    """
    found: dict[str, tuple[KeyStep, ...]] = {}
    called: dict[str, list[KeyedTable]] = {}
    for table in tables.values():
        for word in {*table.row_names, *(key.identified_word for key in table.columns if key.identified_word)}:
            called.setdefault(word, []).append(table)
    for name, table in tables.items():
        declared = [
            KeyStep(key.columns, key.relation, key.reached_columns, is_declared=True, is_unique=True)
            for key in table.source.foreign_keys
            if key.relation in tables and key.relation != name
        ]
        others = {
            other.name: other
            for key in table.keys
            for other in called.get(key.identified_word, ())
            if other is not table
        }
        guessed = [step for other in sorted(others) for step in table.guess_steps(others[other])]
        found[name] = (*declared, *sorted(guessed, key=lambda step: not step.is_unique))
    return found


def _read_columns(table: SourceTable, row_names: Set[str]) -> tuple[_Key, ...]:
    """Return the columns that could be keys. Their names are split without the prefix that all columns have."""
    words = {column.name: split_words(column.name) for column in table.columns}
    first = {split[0] for split in words.values() if len(split) > 1}
    is_prefixed = (
        len(first) == 1
        and all(len(split) > 1 for split in words.values())
        and any(len(word) <= _LONGEST_PREFIX or word in row_names for word in first)
    )
    found = []
    for column in table.columns:
        if read_sql_type(column.declared) not in _KEY_TYPES or not words[column.name]:
            continue
        rest = words[column.name][1:] if is_prefixed else words[column.name]
        found.append(_Key(column, *_split_identifier(rest)))
    return tuple(found)


def _split_identifier(words: Sequence[str]) -> tuple[str, str]:
    """Return the thing that a name identifies, and the word that makes it an identifier: `order` and `key`."""
    if words[-1] in _SUFFIXES:
        return _join(words[:-1]), words[-1]
    if (compound := _COMPOUND.fullmatch(words[-1])) is not None:
        return _join([*words[:-1], compound[1]]), compound[2]
    return _join(words), ""


def _join(words: Sequence[str]) -> str:
    return "".join([*words[:-1], _SHORT.get(words[-1], words[-1])] if words else [])


def _find_singulars(words: Sequence[str]) -> frozenset[str]:
    """Return the possible names of one row, for a table that may be called by the plural."""
    whole, last = "".join(words), words[-1]
    found = {whole, _join(words), "".join([*words[:-1], _SINGULARS.get(last, last)])}
    found |= {whole.removesuffix(ending) for ending in _PLURAL_ENDINGS}
    if whole.endswith("ies"):
        found.add(f"{whole[:-3]}y")
    return frozenset(found)
