"""Dependencies between columns, such as a country's region: a charge to a region counts for its own countries only.

Guarantee: `tie_factors` replaces factors by others. The maximum of their sum is at least the loss of every record that
can exist, and at most the maximum before. It is the largest loss of a possible record if one column determines the
others, its maps are complete, and no limit on sizes was hit. Stored charges do not change. Dependencies are used only
when charges are summed up.

References: docs/proofs/accounting.md, "Functional dependencies".
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from math import prod

import numpy as np

from accountant.balances.cell_sums import CellAxis, Partition
from accountant.balances.variable_elimination import Factor, Places

# exactness against time: a map is read value by value; one with more is left alone, and its columns may combine in
# every way. Set by the order of magnitude, not measured
MOST_VALUES = 1 << 17
# no key value holds it; among the values of a label it stands for all that are not
ANY_OTHER = "\x00"


@dataclass(frozen=True, slots=True, eq=False)
class Dependency:
    """The column `determined_column` as a lasting public function of the column `base_column`.

    Both are named as in labels. `determined_values` maps a value of `base_column` to the value of `determined_column`,
    or to None: the record is then in no key. A record with any other value of `base_column`, or none, has no value of
    `determined_column` if the map `is_complete`. Otherwise it may have any value except the `excluded_values`.
    """

    determined_column: str
    base_column: str
    determined_values: Mapping[str, str | None]
    is_complete: bool
    excluded_values: frozenset[str] = frozenset()


# dependencies among columns as labels call them, the same objects each time: of any table, and of one table
Knowledge = Callable[[str, frozenset[str]], Sequence[Dependency]]
TableKnowledge = Callable[[frozenset[str]], Sequence[Dependency]]


def assume_nothing(_table: str, _columns: frozenset[str]) -> Sequence[Dependency]:
    """Return no dependencies: all columns may combine in every way."""
    return ()


def assume_independent(_columns: frozenset[str]) -> Sequence[Dependency]:
    """Return no dependencies: all columns of a table may combine in every way."""
    return ()


def select_table_knowledge(table: str, knowledge: Knowledge) -> TableKnowledge:
    """Return the known dependencies of one table, as a function of its columns."""
    return assume_independent if knowledge is assume_nothing else partial(knowledge, table)


def find_dependencies(partitions: Iterable[Partition], among: TableKnowledge) -> Sequence[Dependency]:
    """Return the dependencies of the labels of these partitions."""
    if among is assume_independent:
        return ()
    return among(frozenset(label.column for labels in partitions for label in labels))


@dataclass(frozen=True, slots=True)
class _Tie:
    """Labels tied to common axes: for each cell of the grid over `axis_places`, each label's place, or -1 for none.

    A factor is moved to these axes if it has one of the `moved_labels`.
    """

    axis_places: Mapping[CellAxis, Places]
    label_places: Mapping[CellAxis, Places]
    moved_labels: frozenset[CellAxis]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(places) for places in self.axis_places.values())

    def find_tied_labels(self, factor: Factor) -> list[CellAxis]:
        """Return the factor's labels that the common axes replace; none if the factor is not moved."""
        if self.moved_labels.isdisjoint(factor.places):
            return []
        return [label for label in factor.places if label in self.label_places or label in self.axis_places]

    def fits(self, factor: Factor, most_cells: int) -> bool:
        """Return True if the moved factor has at most `most_cells` cells, or no more than it has now."""
        read = self.find_tied_labels(factor)
        rest = prod(len(places) for label, places in factor.places.items() if label not in read)
        return not read or prod(self.shape) * rest <= max(most_cells, factor.array.size)


def tie_factors(
    factors: Sequence[Factor],
    domains: Mapping[CellAxis, Places],
    names: Mapping[CellAxis, Sequence[str]],
    *,
    asked: Collection[CellAxis],
    dependencies: Iterable[Dependency],
    most_cells: int,
    untied: Collection[CellAxis] = (),
) -> tuple[list[Factor], dict[CellAxis, Places]] | None:
    """Return factors and domains in which labels that determine each other share axes. Return None if no labels do.

    `names` are the values at the places of `domains`, with `ANY_OTHER` on open labels with factors that are not zero
    there. The labels `asked` are not maximised away later and keep their axes. The labels `untied` stay as they are. So
    do labels that could only share an axis in a factor of more than `most_cells` cells that is larger than before.
    """
    present = frozenset(label for factor in factors for label in factor.places).union(asked).difference(untied)
    put, known, found = list(factors), dict(domains), False
    for tie in _find_ties(present, domains, names, asked, dependencies):
        if all(tie.fits(factor, most_cells) for factor in put):
            put = [_move_axes(factor, tie, domains) for factor in put]
            known.update(tie.axis_places)
            found = True
    if not found:
        return None
    held = {label for factor in put for label in factor.places}
    return put, {label: places for label, places in known.items() if label in held or label in asked or label in untied}


def _find_ties(
    present: Set[CellAxis],
    domains: Mapping[CellAxis, Places],
    names: Mapping[CellAxis, Sequence[str]],
    asked: Collection[CellAxis],
    dependencies: Iterable[Dependency],
) -> Iterator[_Tie]:
    for base, determined in sorted(_find_bases(present, dependencies).items()):
        if any(len(names.get(label, ())) > MOST_VALUES for label in (base, *determined)):
            continue
        if any(len(dependency.determined_values) > MOST_VALUES for dependency in determined.values()):
            continue
        if base in asked:
            tie = _tie_to_asked_base(base, determined, domains, names, asked)
        else:
            tie = _tie_to_open_base(base, determined, names, asked)
        if tie is not None and not tie.moved_labels.isdisjoint(present):
            yield tie


def _find_bases(
    present: Set[CellAxis], dependencies: Iterable[Dependency]
) -> dict[CellAxis, dict[CellAxis, Dependency]]:
    """Map each base label to the labels that it determines, each with its dependency. Each label has one base.

    An immutable column has the same value in every version, so it determines labels of any version. A column that may
    change determines labels of its own version only. A base that was never charged is used if it ties two labels.
    """
    found: dict[CellAxis, dict[CellAxis, Dependency]] = defaultdict(dict)
    for dependency in dependencies:
        for label in present:
            if label.column == dependency.determined_column:
                for version in dict.fromkeys((label.version, "")):
                    found[label][CellAxis(dependency.base_column, label.unit, version)] = dependency
    first = {label for label in present if present.isdisjoint(found.get(label, ()))}
    chosen: dict[CellAxis, dict[CellAxis, Dependency]] = defaultdict(dict)
    for label, bases in sorted(found.items()):
        there = [base for base in bases if base in first]
        if there:
            base = max(there, key=lambda one: (one.version == label.version, one))
            chosen[base][label] = bases[base]
        elif label in first:
            for base in bases:
                if base not in present and base.version == label.version:
                    chosen[base][label] = bases[base]
                    break
    return {base: tied for base, tied in chosen.items() if base in present or len(tied) > 1}


def _tie_to_asked_base(
    base: CellAxis,
    determined: Mapping[CellAxis, Dependency],
    domains: Mapping[CellAxis, Places],
    names: Mapping[CellAxis, Sequence[str]],
    asked: Collection[CellAxis],
) -> _Tie | None:
    """Tie open labels to a base that is asked, as functions of it. Return None if none can be tied."""
    at = {}
    for label, dependency in determined.items():
        if label not in asked and (
            dependency.is_complete or all(value in dependency.determined_values for value in names[base])
        ):
            places = _number_names(names[label])
            at[label] = _make_array(
                _find_place(dependency.determined_values.get(value), places) for value in names[base]
            )
    return _Tie({base: domains[base]}, at, frozenset(at)) if at else None


def _tie_to_open_base(
    base: CellAxis,
    determined: Mapping[CellAxis, Dependency],
    names: Mapping[CellAxis, Sequence[str]],
    asked: Collection[CellAxis],
) -> _Tie | None:
    """Tie all labels to the states of a record on an open base. Return None if there are too many states.

    The states are a new axis beside those of the asked labels.
    """
    labels = tuple(determined)
    numbers = [_number_names(names[label]) for label in labels]
    anywhere = [
        (
            _find_place(None, numbered),
            *(place for value, place in numbered.items() if value not in determined[label].excluded_values),
        )
        for label, numbered in zip(labels, numbers, strict=True)
    ]
    rows: set[tuple[int, ...]] = set()
    unnamed = _find_place(None, _number_names(names.get(base, ())))
    for named, signature in _list_states(names.get(base, ()), tuple(determined.values())):
        place = unnamed if named < 0 else named
        choices = [
            elsewhere if value is _ANY else (_find_place(value, numbered),)
            for value, numbered, elsewhere in zip(signature, numbers, anywhere, strict=True)
        ]
        if len(rows) + prod(map(len, choices)) > MOST_VALUES:
            return None
        rows.update((place, *chosen) for chosen in product(*choices))
    kept = [index for index, label in enumerate(labels) if label in asked]
    groups: dict[tuple[int, ...], list[tuple[int, ...]]] = defaultdict(list)
    for row in sorted(rows):
        group = tuple(row[1 + index] for index in kept)
        if -1 not in group:
            groups[group].append(row)
    rank = CellAxis(base.column, base.unit, f"tied{base.version}")
    longest = max(map(len, groups.values()), default=1)
    sizes = {labels[index]: len(names[labels[index]]) for index in kept}
    shape = (*sizes.values(), longest)
    if prod(shape) > MOST_VALUES * 8:
        return None
    grids = np.full((1 + len(labels), *shape), -1, dtype=np.intp)
    for group, members in groups.items():
        inside: tuple[slice | int, ...] = (slice(None), *group, slice(len(members)))
        grids[inside] = np.array(members, dtype=np.intp).T
    at = dict(zip((base, *labels), grids, strict=True))
    axes = {label: np.arange(size) for label, size in (*sizes.items(), (rank, longest))}
    return _Tie(axes, at, frozenset(label for label in at if label not in asked))


class _AnyValue:
    """The marker for any value."""


_ANY = _AnyValue()
_Signature = tuple[str | _AnyValue | None, ...]


def _list_states(named: Sequence[str], dependencies: tuple[Dependency, ...]) -> Iterator[tuple[int, _Signature]]:
    """Yield the possible states of a record: the place of its base value, -1 if unnamed, and the determined values."""
    for place, value in enumerate(named):
        yield place, _make_signature(value, dependencies)
    for signature in _describe_unnamed(dependencies):
        yield -1, signature


@lru_cache(maxsize=64)
def _describe_unnamed(dependencies: tuple[Dependency, ...]) -> frozenset[_Signature]:
    """Return the possible states of a record at an unnamed base value."""
    values = {value for dependency in dependencies for value in dependency.determined_values}
    other = tuple(None if dependency.is_complete else _ANY for dependency in dependencies)
    return frozenset(_make_signature(value, dependencies) for value in values).union((other,))


def _make_signature(value: str, dependencies: Sequence[Dependency]) -> _Signature:
    return tuple(one.determined_values.get(value, None if one.is_complete else _ANY) for one in dependencies)


def _number_names(names: Sequence[str]) -> dict[str, int]:
    return {value: place for place, value in enumerate(names)}


def _find_place(value: str | _AnyValue | None, places: Mapping[str, int]) -> int:
    other = places.get(ANY_OTHER, -1)
    return places.get(value, other) if isinstance(value, str) else other


def _make_array(places: Iterable[int]) -> Places:
    return np.fromiter(places, dtype=np.intp)


def _move_axes(factor: Factor, tie: _Tie, domains: Mapping[CellAxis, Places]) -> Factor:
    """Return the factor moved to the tie's axes, or unchanged if it has none of the moved labels."""
    read = tie.find_tied_labels(factor)
    if not read:
        return factor
    others = [label for label in factor.places if label not in read]
    order = list(factor.places)
    array = factor.array.transpose([order.index(label) for label in (*read, *others)])
    positions = []
    for label in read:
        position = np.full(len(domains[label]) + 1, -1, dtype=np.intp)  # the last one is where no place is
        position[factor.places[label]] = np.arange(len(factor.places[label]))
        positions.append(position[tie.label_places[label] if label in tie.label_places else tie.axis_places[label]])
    inside = np.all([position >= 0 for position in positions], axis=0)
    put = np.zeros((*tie.shape, *(len(factor.places[label]) for label in others)), dtype=np.int64)
    put[inside] = array[tuple(position[inside] for position in positions)]
    return Factor({**tie.axis_places, **{label: factor.places[label] for label in others}}, put)
