"""The identity of a functional, without its name: functionals with equal identities may share noise."""

from collections.abc import Mapping
from hashlib import sha256

from mechanisms.protocol import LARGEST, LEAST, Deviation, MeanPair, Quantile
from planner.question.condition_text import write_canonical
from planner.question.question import CellRead, Functional, Offsets, Term

_PAIR_NAMES = ("times", "constant", "step", "reach", "other_reach", "rows", "other_rows")


def identify_functional(functional: Functional, keys: Mapping[str, str] | None = None) -> str:
    """Return an identity of a functional's sum and offsets, unique among functionals with one table, filter and keys.

    Parameters:
        keys: the question's keys, each with its identity. Without them no key is computed.
    """
    taken_off = () if functional.offsets is None else (_identify_offsets(functional.offsets, keys or {}),)
    return "|".join((identify_sum(functional), *taken_off))


def identify_sum(functional: Functional) -> str:
    """Return the identity of a functional's sum, without the offsets that are subtracted before it is compared."""
    low, high = functional.unit_range or ("", "")
    if functional.pair is not None:
        return f"means {_identify_pair(functional.pair)} of {' : '.join(map(_identify_reading, functional.cell_reads))}"
    if functional.cell_reads:
        return " + ".join(sorted(map(_identify_reading, functional.cell_reads)))
    return "|".join(
        (
            functional.measure.value,
            " + ".join(sorted(map(_identify_term, functional.terms))),
            f"sensitivity={functional.sensitivity}",
            f"unit_range={low}..{high}",
            *((f"off each unit={functional.off_each_unit}",) if functional.off_each_unit else ()),
            *((f"divided over {functional.split_keys}",) if functional.split_keys else ()),
            *(() if functional.off_condition is None else (f"with [{write_canonical(functional.off_condition)}]",)),
        )
    )


def _identify_pair(pair: MeanPair) -> str:
    """Return the text of two means that are compared. Its names stay, because ledgers have stored digests of it."""
    values = (pair.other_factor, pair.constant, pair.step, pair.largest_mean, pair.largest_other_mean)
    named = dict(zip(_PAIR_NAMES, (*values, pair.rows, pair.other_rows), strict=True))
    text = ", ".join(f"{name}={value!r}" for name, value in named.items())
    added, read = pair.deviation, pair.quantile
    if pair.averaged_groups:
        return f"MeanPair({text}) of {pair.averaged_groups} means"
    if read is not None:
        bins = f"{read.bins} bins of {read.width} from {read.first} within {read.reach}"
        return f"MeanPair({text}) and {read.times} quantiles at {read.share} within {read.slack} in {bins}"
    if added is None:
        return f"MeanPair({text})"
    kind = "sample" if added.is_sample else "whole"
    return f"MeanPair({text}) and {added.times} {kind} deviations in {added.square}, at least {added.least}"


def _identify_reading(read: CellRead) -> str:
    where = read.cells
    taken = sha256(repr(where.used_places).encode()).hexdigest() if where.used_places else ""
    statistic = "" if where.statistic is None else f" {_identify_statistic(where.statistic)}"
    cells = f"{where.summed_keys!r} {where.key!r} {taken} {where.most_places}{statistic}"
    otherwise = "" if read.empty_value is None else f" or {read.empty_value}"
    otherwise += " or fails" if where.false_without_value else ""
    return f"{read.factor} in {cells}{otherwise} of ({identify_sum(read.summed)})"


def _identify_statistic(statistic: Quantile | Deviation) -> str:
    if isinstance(statistic, Deviation):
        divides = "" if statistic.if_equal is None else f" or {statistic.if_equal}"
        return f"{'sample' if statistic.is_sample else 'whole'} deviation{divides}"
    if statistic in (LARGEST, LEAST):
        return "+1" if statistic == LARGEST else "-1"
    return f"{'between' if statistic.interpolated else 'at'} {statistic.share}"


def _identify_offsets(taken: Offsets, keys: Mapping[str, str]) -> str:
    """Return the digest of the offsets by key. The question names its keys separately, in the same order."""
    digest = sha256(" ".join(map(str, taken.steps)).encode()).hexdigest()
    return f"less {len(taken.steps)} numbers by {keys.get(taken.key, taken.key)!r} {digest}"


def _identify_term(term: Term) -> str:
    column = "*" if term.column is None else repr(term.column)
    return f"{term.coefficient} {column}^{term.power} [{write_canonical(term.condition)}]"
