"""Partitions of values into groups, in one form for all spellings of an expression, with their names.

Guarantee: two computed keys of one table have one identity only if they put the same rows into the same groups, and
number the groups alike. An answer to a question by one of them is therefore an answer to the question by the other.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import combinations, pairwise, product

from planner.catalog.catalog import Column, ComputedName, MergedKeys, Table, Value, ValueGroups
from planner.catalog.key_space import format_value
from planner.question.condition import And, Compare, Condition, Like, Not, Or, join_all
from planner.values.like import escape_pattern, find_prefix, matches_pattern

_FEW_CUTS = 3  # that a name in the ledger shows: more would hide the rest of it
_Signs = tuple[bool, ...]


def merge_parts(parts: ValueGroups, merged: Sequence[int]) -> tuple[ValueGroups, tuple[int, ...]]:
    """Merge the groups of a column's values that have the same number in `merged`.

    Return them in canonical form, without cut points, constants and patterns that separate no groups. Also return the
    new number of each group.
    """
    groups = [None if group is None else merged[group] for group in parts.groups]
    cuts, tests = parts.cut_points, parts.tests
    if isinstance(parts.column, ComputedName) and tests:
        pass  # a condition and its negation: of these none is idle
    elif tests:
        tests, groups = _prune_tests(parts.column, tests, groups)
    else:  # what does not change at a cut needs none
        kept = [place for place, (one, after) in enumerate(pairwise(groups)) if one != after]
        cuts, groups = tuple(cuts[place] for place in kept), [*(groups[place] for place in kept), groups[-1]]
    present = [*groups, *([] if parts.null_group is None else [merged[parts.null_group]])]
    numbers = {group: number for number, group in enumerate(dict.fromkeys(one for one in present if one is not None))}
    together = replace(
        parts,
        cut_points=cuts,
        tests=tests,
        groups=tuple(None if group is None else numbers[group] for group in groups),
        null_group=None if parts.null_group is None else numbers[merged[parts.null_group]],
        shown_values=tuple(parts.shown_values[merged.index(group)] for group in numbers),
    )
    return together, tuple(numbers[group] for group in merged)


def list_tests(
    column: str, constants: Sequence[str], patterns: Sequence[str], matched: Iterable[_Signs]
) -> tuple[Condition, ...]:
    """Return the conditions that divide texts into groups.

    There is one for each constant, and for other texts one for each combination of patterns that they match.
    """
    others: list[Condition] = [Not(Compare(column, "=", text)) for text in constants]
    return (
        *(Compare(column, "=", text) for text in constants),
        *(
            join_all(
                [
                    *others,
                    *(_make_match(column, one, matches=holds) for one, holds in zip(patterns, signs, strict=True)),
                ]
            )
            for signs in matched
        ),
    )


def _make_match(column: str, pattern: str, *, matches: bool) -> Condition:
    return Like(column, pattern) if matches else Not(Like(column, pattern))


def _prune_tests(
    column: str, tests: Sequence[object], groups: Sequence[int | None]
) -> tuple[tuple[Condition, ...], list[int | None]]:
    """Return the conditions and groups without patterns that no group depends on, and without redundant constants.

    A constant is redundant if its group is that of the texts around it.
    """
    found = [test for test in tests if isinstance(test, Compare | Like | Not | And | Or)]
    if all(isinstance(test, Like) for test in found):  # ends of texts that are listed
        return tuple(found), list(groups)
    constants = {str(one.value): group for one, group in zip(found, groups, strict=True) if isinstance(one, Compare)}
    others = {_read_signs(one): group for one, group in zip(found, groups, strict=True) if not isinstance(one, Compare)}
    if not others:  # of a boolean, or of texts that are listed
        return tuple(found), list(groups)
    patterns = sorted({pattern for signs in others for pattern, _ in signs})
    matched = {tuple(dict(signs)[pattern] for pattern in patterns): group for signs, group in others.items()}
    for pattern in list(patterns):
        place = patterns.index(pattern)
        flipped = [(*signs[:place], not signs[place], *signs[place + 1 :]) for signs in matched]
        if all(matched.get(flip, -1) == group for flip, group in zip(flipped, matched.values(), strict=True)):
            patterns.remove(pattern)
            matched = {(*signs[:place], *signs[place + 1 :]): group for signs, group in matched.items()}
    around = {text: tuple(matches_pattern(text, pattern) for pattern in patterns) for text in constants}
    kept = sorted(text for text, group in constants.items() if matched.get(around[text], -1) != group)
    told = sorted(matched)
    numbers = [*(constants[text] for text in kept), *(matched[signs] for signs in told)]
    return list_tests(column, kept, patterns, told), numbers


def _read_signs(test: Condition) -> tuple[tuple[str, bool], ...]:
    """Return the patterns in a condition of `list_tests`, each with whether a text matches it."""
    found: list[tuple[str, bool]] = []
    for one in test.list_conjuncts():
        match one:
            case Like(pattern=pattern):
                found.append((pattern, True))
            case Not(Like(pattern=pattern)):
                found.append((pattern, False))
            case _:
                pass
    return tuple(found)


def may_miss_texts(parts: ValueGroups) -> bool:
    """Return True if a text may satisfy none of the conditions of a column's groups.

    Such a text would match several patterns at once. No common example was found for them, but their prefixes do not
    exclude one.
    """
    found = [test for test in parts.tests if isinstance(test, Compare | Like | Not | And | Or)]
    signs = {_read_signs(test) for test in found if not isinstance(test, Compare)}
    patterns = [pattern for pattern, _ in next(iter(signs), ())]
    known = {tuple(holds for _, holds in one) for one in signs}
    return any(
        _can_match([pattern for pattern, holds in zip(patterns, one, strict=True) if holds],
                  [pattern for pattern, holds in zip(patterns, one, strict=True) if not holds])
        for one in product((False, True), repeat=len(patterns))
        if one not in known
    )  # fmt: skip


def _can_match(matched: Sequence[str], unmatched: Sequence[str]) -> bool:
    """Return True if the prefixes of patterns allow a text that matches some of them and not the others."""
    begun = [find_prefix(pattern) for pattern in matched]
    if any(not one.startswith(other) and not other.startswith(one) for one, other in combinations(begun, 2)):
        return False
    longest = max(begun, key=len, default="")
    return not any(
        pattern == f"{escape_pattern(prefix)}%" and longest.startswith(prefix)
        for pattern in unmatched
        if (prefix := find_prefix(pattern))
    )


def label_parts(parts: ValueGroups, base: Column) -> str:
    """Return the ledger's name for groups of a column's values: the column's ledger name, and the grouping.

    Equal groups of one column have one name, however an expression writes them.
    """
    digest = sha256(f"{base.label!r}\n{parts.meaning}".encode()).hexdigest()[:32]
    at = ", ".join(map(format_value, parts.cut_points[:_FEW_CUTS]))
    more = ", ..." if len(parts.cut_points) > _FEW_CUTS else ""
    return f"{base.label} grouped{f' at {at}{more}' if at else ''} {digest}"


def identify_parts(parts: ValueGroups) -> str:
    """Return the text that identifies groups of a column's values. Equal groups have equal texts."""
    return f"parts of {parts.column!r} {sha256(parts.meaning.encode()).hexdigest()}"


def name_merged_keys(merged: MergedKeys, bases: Sequence[Column], table: Table) -> tuple[MergedKeys, str, str]:
    """Return groups of several keys' combinations in canonical order, their name in the ledger, and their identity.

    All three follow from the coarsest groups of each key that separate the combinations.
    """
    known: list[tuple[Value, ...]] = list(merged.known)
    groups = dict(zip(product(*(range(len(values)) for values in known)), merged.groups, strict=True))
    columns = list(bases)
    for axis, column in enumerate(bases):
        if not isinstance(column.derivation, ValueGroups):
            continue
        slices: dict[int, list[int]] = {}
        for places, group in groups.items():  # in order, so that each slice is
            slices.setdefault(places[axis], []).append(group)
        alike: dict[tuple[int, ...], int] = {}
        together = [alike.setdefault(tuple(slices[place]), len(alike)) for place in range(len(known[axis]))]
        parts, numbers = merge_parts(column.derivation, together)
        base = table.get_column(parts.column)
        columns[axis] = replace(column, ledger=label_parts(parts, base), canonical=identify_parts(parts))
        known[axis] = tuple(range(len(alike)))
        groups = {(*at[:axis], numbers[at[axis]], *at[axis + 1 :]): group for at, group in groups.items()}
    order: dict[int, int] = {}
    mapping = tuple(order.setdefault(groups[at], len(order)) for at in product(*(range(len(one)) for one in known)))
    meaning = replace(merged, known=tuple(known), groups=mapping).meaning
    labels = [column.label for column in columns]
    digest = sha256(f"{labels!r}\n{meaning}".encode()).hexdigest()[:32]
    whole = sha256(meaning.encode()).hexdigest()
    numbered = replace(
        merged,
        groups=tuple(order[group] for group in merged.groups),
        shown_values=tuple(merged.shown_values[group] for group in order),
    )
    return (
        numbered,
        f"{', '.join(labels)} together {digest}",
        f"merged of {[column.identity for column in columns]!r} {whole}",
    )
