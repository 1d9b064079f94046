"""The release of `keyhole bounds`: contribution bounds of one privacy unit, found privately from the data, and charged.

Each bound is a high quantile of one number that each unit has. It is found by one scan of noisy counts of units
(mechanisms/publishing/private_bounds.py). The scans of one release share its epsilon equally. If the number of units is
not declared, a part of the epsilon is used to count them.

References: docs/proofs/private_bounds.md.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, log, prod
from typing import Any

from mechanisms.noise.exact import check_rate
from mechanisms.protocol import Noise, Unachievable
from mechanisms.publishing.private_bounds import (
    BoundScan,
    calibrate_scan,
    find_least_cut,
    find_least_epsilon,
    list_candidates,
    run_scan,
)
from planner.bind.computed_groupings import read_grouping
from planner.catalog.catalog import Catalog, Column, Grouping, SqlType, Table
from planner.errors import KeyholeError
from planner.lower.dialects.dialect import Dialect
from planner.lower.unit_statistics import LOW_SIDES, BoundKind, UnitCounts, UnitStatistic
from planner.values.sql_literals import find_integer_limit, read_numeric_modifier
from proxy.open_policy.service import Service
from proxy.release.charged import PaidRelease, Release, make_release
from proxy.release.release_refusals import (
    refuse_endless_column,
    refuse_hidden_cut,
    refuse_undrawable,
    refuse_unknown_table,
)
from proxy.sources.protocol import Counts

BETA = Fraction(1, 20)
"""A bound's statement fails with at most this probability, a half of it on either side: one in forty cuts too much."""

_COUNTING = Fraction(1, 10)  # of epsilon: the count is needed to within a few units, a scan to within dozens
_COUNTING_FAILS = Fraction(1, 5)  # of beta
_MOST_CUT = 0.5  # a bound that cuts more is none
_MOST_ROWS = 1 << 20  # of one unit in one group: who has more is cut, and the noise grows with the logarithm alone
_DOUBLE_STEPS = 1 << 20  # into which the public range of a double without a grid is cut


@dataclass(frozen=True, slots=True)
class BoundsRequest:
    """The owner's request for bounds. All of it is public. The order of its parts does not matter.

    Parameters:
        keys: sets of grouping columns, for bounds on the groups and rows of one unit.
        totals: measures, for bounds on a unit's totals in groups of these keys.
        columns: columns, for bounds on their values.
        cut: the share of units that may exceed a bound.
        units: a public lower bound on the number of units. If None, units are counted with noise.
        most: maps a column to its largest possible value, if the column's type does not give one.
    """

    table: str
    keys: tuple[tuple[str, ...], ...]
    totals: tuple[str, ...]
    columns: tuple[str, ...]
    epsilon: Fraction
    cut: Fraction
    units: int | None
    most: Mapping[str, Decimal]
    why: str = ""

    @property
    def text(self) -> str:
        """Return the request as text, for the ledger."""
        parts = [f"keyhole bounds {self.table} --epsilon {float(self.epsilon):g} --cut {float(100 * self.cut):g}%"]
        parts += [f"--keys {','.join(keys)}" for keys in self.keys]
        parts += [f"--total {name}" for name in self.totals]
        parts += [f"--column {name}" for name in self.columns]
        parts += [f"--most {name}={most:f}" for name, most in sorted(self.most.items())]
        parts += [] if self.units is None else [f"--units {self.units}"]
        return " ".join(parts) + (f" (why: {self.why})" if self.why else "")


@dataclass(frozen=True, slots=True)
class FoundBound:
    """One released bound in the user's unit. `most_beyond` units or fewer probably exceed it.

    `is_loose` means that the bound may be far larger than needed. `is_last` means that it is the largest candidate.
    """

    kind: BoundKind
    keys: tuple[str, ...]
    column: str | None
    bound: Decimal
    most_beyond: int
    is_loose: bool
    is_last: bool


@dataclass(frozen=True, slots=True)
class FoundBounds:
    """The result of a release of bounds.

    `units` is a lower bound on the number of units. `is_counted` is True if that number was counted with noise. `cut`
    is the largest share of units that exceed a bound. If there are few units, `cut` is more than requested, or None if
    no bound could be found.
    """

    bounds: tuple[FoundBound, ...]
    units: int
    is_counted: bool
    cut: float | None

    def to_bytes(self) -> bytes:
        """Return the bounds as bytes, for the ledger."""
        bounds = [
            {
                "of": one.kind.value,
                "keys": list(one.keys),
                "column": one.column,
                "bound": str(one.bound),
                "most_beyond": one.most_beyond,
                "loose": one.is_loose,
                "last": one.is_last,
            }
            for one in self.bounds
        ]
        document = {"bounds": bounds, "units": self.units, "counted": self.is_counted, "cut": self.cut}
        return json.dumps(document, sort_keys=True).encode()

    @staticmethod
    def from_bytes(stored: bytes) -> "FoundBounds":
        """Parse bounds from the ledger's bytes."""
        document: dict[str, Any] = json.loads(stored)
        return FoundBounds(
            bounds=tuple(
                FoundBound(
                    kind=BoundKind(one["of"]),
                    keys=tuple(one["keys"]),
                    column=one["column"],
                    bound=Decimal(one["bound"]),
                    most_beyond=one["most_beyond"],
                    is_loose=one["loose"],
                    is_last=one["last"],
                )
                for one in document["bounds"]
            ),
            units=document["units"],
            is_counted=document["counted"],
            cut=document["cut"],
        )


@dataclass(frozen=True, slots=True)
class BoundsRelease:
    """A planned request for bounds, with the counts to read and the decision from these counts."""

    request: BoundsRequest
    release: Release[UnitCounts]

    @property
    def epsilon_per_scan(self) -> Fraction:
        """Return the epsilon spent on one bound."""
        whole = self.request.epsilon * (1 - (_COUNTING if self.request.units is None else 0))
        return whole / len(self.release.counts.statistics)

    @property
    def beta(self) -> Fraction:
        """The largest probability that the statement about one bound is wrong."""
        return BETA * (1 - (_COUNTING_FAILS if self.request.units is None else 0))

    def decide(self, counts: Counts, noise: Noise) -> FoundBounds:
        """Compute the bounds from true counts. All noise is drawn here."""
        statistics = self.release.counts.statistics
        units = self.request.units
        if units is None:
            units = self._count_units(counts[len(statistics)][0], noise)
        scans = [self._make_scan(one, units) for one in statistics]
        found = []
        for place, (statistic, scan) in enumerate(zip(statistics, scans, strict=True)):
            if scan is None:
                return FoundBounds((), units, self.request.units is None, None)
            index = run_scan(scan, counts[place], noise=noise)
            found.append(_make_found_bound(statistic, scan, index))
        cut = max(float(scan.cut_share) for scan in scans if scan is not None)
        return FoundBounds(tuple(found), units, self.request.units is None, cut)

    def _count_units(self, true: int, noise: Noise) -> int:
        """Return a noisy number of units. It is too large with probability at most beta / 5."""
        rate = self.request.epsilon * _COUNTING
        noisy = true + int(noise.draw_discrete_laplace(rate=rate, size=1)[0])
        return max(0, noisy - ceil(log(1 / (BETA * _COUNTING_FAILS)) / rate))

    def _make_scan(self, statistic: UnitStatistic, units: int) -> BoundScan | None:
        """Return the scan for the requested cut share, or for the smallest share that works.

        Return None if none works.
        """
        if not units:
            return None
        cut = self.request.cut
        candidates, epsilon, beta = statistic.candidates, self.epsilon_per_scan, self.beta
        try:
            return calibrate_scan(candidates, epsilon=epsilon, units=units, cut=cut, beta=beta)
        except Unachievable:
            pass
        least = BoundScan(candidates, epsilon, units, cut, beta)
        cut = (
            Fraction(least.overshoot + least.undershoot + 2) / units
        )  # the least that is tight, rounded to the safe side
        return BoundScan(candidates, epsilon, units, cut, beta) if cut < _MOST_CUT else None

    def check_reachable(self) -> None:
        """Raise KH311 if the requested cut share is too small for the noise, given the declared number of units."""
        units = self.request.units
        if units is None:
            return
        statistics, cut, beta = self.release.counts.statistics, self.request.cut, self.beta
        longest = max(statistics, key=lambda one: len(one.candidates)).candidates
        epsilon = self.epsilon_per_scan
        try:
            calibrate_scan(longest, epsilon=epsilon, units=units, cut=cut, beta=beta)
        except Unachievable:
            raise refuse_hidden_cut(
                float(cut),
                least_epsilon=len(statistics) * find_least_epsilon(longest, units=units, cut=cut, beta=beta),
                least_cut=find_least_cut(longest, epsilon=epsilon, units=units, beta=beta),
            ) from None


def plan_bounds(asked: BoundsRequest, catalog: Catalog, dialect: Dialect) -> BoundsRelease:
    """Plan a release of bounds: what it reads and what it costs. Nothing is charged.

    A key may be an expression whose values follow from the policy. Raise KH201, KH202, KH203, KH311 and KH312.
    """
    table = catalog.find_table(asked.table)
    if table is None:
        raise refuse_unknown_table(asked.table, catalog)
    asked = replace(
        asked,
        keys=tuple(sorted(tuple(sorted(keys)) for keys in asked.keys)),
        totals=tuple(sorted(asked.totals)),
        columns=tuple(sorted(asked.columns)),
    )
    table = _add_computed_keys(table, asked.keys)
    statistics = tuple(_list_statistics(table, asked))
    if not statistics:
        raise KeyholeError(
            "KH202",
            "nothing to bound is named",
            hint="Name grouping columns with --keys, or columns with numbers with --column.",
        )
    counts = UnitCounts(table, dialect, statistics, counts_units=asked.units is None)
    terms = f"{asked.epsilon} {asked.cut} {asked.units}"
    planned = BoundsRelease(asked, Release(counts, terms, asked.epsilon, asked.text, _write_promise(asked)))
    try:
        for rate in (planned.epsilon_per_scan / 2, asked.epsilon * _COUNTING):
            check_rate(rate)
    except Unachievable:
        raise refuse_undrawable() from None
    return planned


def _write_promise(asked: BoundsRequest) -> str:
    share = f"{float(100 * asked.cut):g} %"
    if asked.units is None:
        share += " (or the least share that can be told of so few units as are counted)"
    return f"At most {share} of the privacy units lie beyond a bound, with probability {float(1 - BETA / 2):g}."


def find_bounds(service: Service, planned: BoundsRelease) -> tuple[FoundBounds, PaidRelease]:
    """Charge the request and find the bounds. Return earlier bounds instead, if the same request was charged before.

    Raise KH310, KH313, KH501 and KH502.
    """
    released = make_release(service, planned.release, lambda counts: planned.decide(counts, service.noise).to_bytes())
    return FoundBounds.from_bytes(released.body), released


def _add_computed_keys(table: Table, several: Sequence[tuple[str, ...]]) -> Table:
    """Return the table with computed keys added as columns, each named by its typed text.

    Raise KH201 and KH202.
    """
    stored = {column.name for column in table.columns}
    typed = dict.fromkeys(key for keys in several for key in keys if key not in stored and not key.isidentifier())
    if not typed:
        return table
    known, columns = read_grouping(table, Grouping((), None, None, (), computed=tuple(typed)))
    called = [replace(column, name=text) for column, text in zip(columns, typed, strict=True)]
    names = set(typed)
    return replace(known, columns=(*(one for one in known.columns if one.name not in names), *called))


def _list_statistics(table: Table, asked: BoundsRequest) -> Iterator[UnitStatistic]:
    if asked.keys and table.is_row_unit:
        raise KeyholeError(
            "KH202",
            f'each row of "{table.name}" is its own privacy unit, so its groups and rows need no bound',
            hint="Bound the values of a column with --column.",
        )
    for keys in asked.keys:
        yield from _list_key_statistics(table, keys, asked)
    for name in asked.columns:
        yield from _list_value_statistics(table, table.get_column(name), asked)


def _list_key_statistics(table: Table, keys: tuple[str, ...], asked: BoundsRequest) -> Iterator[UnitStatistic]:
    columns = [table.get_column(name) for name in keys]
    without = [one.name for one in columns if not one.domain and (one.domain is None or one.computed)]
    if without:
        raise KeyholeError(
            "KH202",
            f'"{without[0]}" of "{table.name}" has no public domain, so no groups can be made by it',
            hint="Name columns that have a key in the policy; docs/policy.md describes key.",
        )
    open_ = [len(one.domain or ()) for one in columns if not table.determines(one)]
    one = Fraction(1)
    if open_:
        yield UnitStatistic(BoundKind.GROUPS, keys, None, one, list_candidates(prod(open_)))
    yield UnitStatistic(BoundKind.ROWS, keys, None, one, list_candidates(_MOST_ROWS))
    for name in asked.totals:
        column = table.get_column(name)
        _check_number(table, column)
        if column.bounds is None:
            raise KeyholeError(
                "KH203",
                f'"{name}" of "{table.name}" has no bounds, which its totals need first',
                hint=f"Find them with --column {name}.",
            )
        step = _find_step(column)
        for of, end in ((BoundKind.HIGHEST_TOTAL, column.bounds[1]), (BoundKind.LOWEST_TOTAL, -column.bounds[0])):
            if end > 0:
                steps = ceil(Fraction(end) / step)
                yield UnitStatistic(of, keys, name, step, list_candidates(steps * _MOST_ROWS))


def _list_value_statistics(table: Table, column: Column, asked: BoundsRequest) -> Iterator[UnitStatistic]:
    end = _find_public_end(table, column, asked.most.get(column.name))
    step = _find_step(column, end=end)
    candidates = list_candidates(ceil(end / step))
    yield UnitStatistic(BoundKind.HIGHEST_VALUE, (), column.name, step, candidates)
    if column.bounds is None or column.bounds[0] < 0:
        yield UnitStatistic(BoundKind.LOWEST_VALUE, (), column.name, step, candidates)


def _check_number(table: Table, column: Column) -> None:
    if column.sql_type not in (SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE):
        raise KeyholeError(
            "KH203",
            f'column "{column.name}" of "{table.name}" is not a number',
            hint="Name a column of type integer, numeric or double precision.",
        )


def _find_public_end(table: Table, column: Column, declared: Decimal | None) -> Fraction:
    """Return the largest possible value of a column, as the owner declares it or as its type implies."""
    _check_number(table, column)
    if declared is not None:
        return Fraction(declared)
    if column.sql_type is SqlType.INTEGER:
        return Fraction(find_integer_limit(column.declared))
    declared_digits = read_numeric_modifier(column.declared) if column.sql_type is SqlType.NUMERIC else None
    if declared_digits is None:
        raise refuse_endless_column(table.name, column.name)
    digits, places = declared_digits
    return Fraction(10) ** (digits - places)


def _find_step(column: Column, *, end: Fraction | None = None) -> Fraction:
    """Return the distance between candidates, in the user's unit: the declared grid, or the type's own step."""
    if column.grid is not None:
        return Fraction(column.grid)
    if column.sql_type is SqlType.INTEGER:
        return Fraction(1)
    digits = read_numeric_modifier(column.declared) if column.sql_type is SqlType.NUMERIC else None
    if digits is not None:
        return Fraction(1, 10 ** digits[1])
    if end is None:
        raise KeyholeError(
            "KH203",
            f'column "{column.name}" has no declared grid',
            hint="Declare the step to round to, such as grid = 0.01, with the column's bounds in the policy.",
        )
    return end / _DOUBLE_STEPS


def _make_found_bound(statistic: UnitStatistic, scan: BoundScan, index: int) -> FoundBound:
    steps = scan.candidates[index]
    value = statistic.step * steps * (-1 if statistic.kind in LOW_SIDES else 1)
    return FoundBound(
        kind=statistic.kind,
        keys=statistic.keys,
        column=statistic.column,
        bound=Decimal(value.numerator) / Decimal(value.denominator),
        most_beyond=scan.most_beyond,
        is_loose=scan.tightness < 0,
        is_last=index == len(scan.candidates) - 1,
    )
