"""Clips of values whose range nobody declared: `avg(b - a) > 140` counts values from -420 to 700 unchanged.

A value beyond an end counts as that end. Both ends are four thresholds away from the threshold, so that neither costs
more noise than the other. A row of a sum counts a tenth of the threshold at most.

Guarantee: clips are functions of the text and the policy. Sensitivity depends on them and on no content of rows,
because values are clipped in the SQL. One expression has one clip in a question, so that its sums share their noise.

References: docs/decisions/0039-clips-by-thresholds.md.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from planner.aggregates.comparison import Comparison, Complement, Conjunction, Disjunction, Having, SpreadComparison
from planner.aggregates.computed_measure import Clips, is_unbounded
from planner.aggregates.having_refusals import refuse_unknown_range
from planner.aggregates.row_expression import SumPart
from planner.catalog.catalog import Column, Computed
from planner.errors import KeyholeError
from planner.parser.lexer import spell_name
from planner.parser.tree import write_node
from planner.predicates.computed.ranges import Clip
from planner.values.decimals import convert_to_decimal

_THRESHOLDS_AWAY = 4
"""How many thresholds an end is away from the threshold of a mean. Of exponential values with that mean, 5 times the
mean cuts 0.7 % of their sum, of lognormal ones with sigma 1 it cuts 5 %; noise grows in proportion."""
_PART_OF_SUM = 10  # a row of a sum counts a tenth of the threshold at most: as five times its part in 50 rows

_DAY = 86_400  # seconds


@dataclass(frozen=True, slots=True)
class _UnboundedPart:
    """A part without a range, and the ends up to which it counts, in the unit of its comparison.

    The ends are None without a scale.
    """

    comparison: Comparison
    part: SumPart
    low: Fraction | None
    high: Fraction | None


def find_clips(formulas: Iterable[Having]) -> Clips:
    """Return the clip of each expression without a range, from the thresholds of its comparisons.

    Raise KH203 for an expression without such a threshold.
    """
    found: dict[str, Clip] = {}
    without: dict[str, KeyholeError] = {}
    for one in (
        one for formula in formulas for leaf in formula.list_comparisons() for one in _list_unbounded_parts(leaf)
    ):
        column = one.part.column
        assert column is not None
        name = str(column.name)
        if one.low is None or one.high is None or one.low >= one.high:
            without.setdefault(name, refuse_unknown_range(column, position=one.comparison.position))
            continue
        low, high = sorted((one.low / one.part.coefficient, one.high / one.part.coefficient))
        clip = Clip(low, high)
        found[name] = clip.unite(found[name]) if name in found else clip
    for name, refusal in without.items():
        if name not in found:
            raise refusal
    return found


def _list_unbounded_parts(leaf: Comparison | SpreadComparison) -> Iterator[_UnboundedPart]:
    if isinstance(leaf, SpreadComparison):
        return
    low, high = _find_scale(leaf)
    divisors = {part.column for part in leaf.ratio_base}
    for part in leaf.summands:
        if part.power and part.coefficient and is_unbounded(part.column):
            if part.column not in divisors or low is None:
                yield _UnboundedPart(leaf, part, low, high)
            elif part.coefficient < 0:  # a divisor is not negative
                yield _UnboundedPart(leaf, part, low, Fraction(0))
            else:
                yield _UnboundedPart(leaf, part, Fraction(0), high)
    if leaf.other_mean is not None:
        for part in leaf.other_mean.mean.summands:
            if part.power and is_unbounded(part.column):
                yield _UnboundedPart(leaf, part, None, None)


def _find_scale(leaf: Comparison) -> tuple[Fraction, Fraction] | tuple[None, None]:
    """Return the range that a row counts in the unit of a comparison. Return Nones if its only threshold is 0."""
    if leaf.other_mean is not None:
        return None, None
    if _divides_by_sum(leaf):
        most = max(map(_find_largest_part, leaf.summands), default=Fraction(0))
        return -most, most
    is_mean = leaf.per_row is not None or leaf.divides_by_units
    at = (
        leaf.threshold
        if leaf.key_thresholds is None
        else max(map(abs, leaf.key_thresholds.known_numbers), default=Fraction(0))
    )
    if is_mean:
        return at - _THRESHOLDS_AWAY * abs(at), at + _THRESHOLDS_AWAY * abs(at)
    return -abs(at) / _PART_OF_SUM, abs(at) / _PART_OF_SUM


def _divides_by_sum(leaf: Comparison) -> bool:
    """Return True for a ratio whose divisor is a sum of columns, so that each side has a unit of its own."""
    return bool(leaf.ratio_base and not leaf.divides_by_units) or (
        leaf.per_row is not None and all(part.power for part in leaf.summands)
    )


def _find_largest_part(part: SumPart) -> Fraction:
    if not part.power or part.column is None or part.column.bounds is None:
        return Fraction(0)
    return max(abs(part.coefficient * Fraction(end)) for end in part.column.bounds)


def describe_clips(formulas: Iterable[Having]) -> tuple[str, ...]:
    """Return a sentence about each clipped expression: its ends, the reason, and the effect on the answer."""
    first: dict[Column, tuple[Comparison, SumPart]] = {}
    said: dict[Column, dict[str, None]] = {}
    missed: dict[Column, set[str]] = {}
    kept: dict[Column, set[str]] = {}
    for leaf, is_complement in (one for formula in formulas for one in _list_leaves(formula)):
        for part in leaf.summands if isinstance(leaf, Comparison) else ():
            derivation = part.column.derivation if part.column is not None and part.power else None
            if part.column is not None and isinstance(derivation, Computed) and any(derivation.clipped):
                assert isinstance(leaf, Comparison)
                first.setdefault(part.column, (leaf, part))
                said.setdefault(part.column, {})[leaf.text] = None
                away = set(_list_ends_that_miss_groups(leaf, part, is_complement=is_complement))
                missed.setdefault(part.column, set()).update(away)
                both = leaf.operator in ("=", "<>")
                kept.setdefault(part.column, set()).update({"above", "below"} - (set() if both else away))
    return tuple(
        _write_sentence(*one, tuple(said[column]), missed[column], kept[column]) for column, one in first.items()
    )


def _list_leaves(
    formula: Having, *, is_complement: bool = False
) -> Iterator[tuple[Comparison | SpreadComparison, bool]]:
    match formula:
        case Complement(inner):
            yield from _list_leaves(inner, is_complement=not is_complement)
        case Conjunction(children) | Disjunction(children):
            for child in children:
                yield from _list_leaves(child, is_complement=is_complement)
        case Comparison() | SpreadComparison():
            yield formula, is_complement


def _list_ends_that_miss_groups(leaf: Comparison, part: SumPart, *, is_complement: bool) -> Iterator[str]:
    """Yield the ends, as `_write_sentence` names them, beyond which values may make a group be missed.

    A clip at such an end moves the sum away from the values that pass.
    """
    if leaf.operator in ("=", "<>"):
        yield from ("above", "below")
        return
    rises = (leaf.operator in (">", ">=")) is not is_complement
    is_turned = (_find_unit(leaf, part) > 0) is not (part.coefficient > 0)
    yield "above" if rises is not is_turned else "below"


def _find_unit(leaf: Comparison, part: SumPart) -> Fraction:
    """Return the size of one step of a column in the unit of the comparison, or in its own if a sum divides."""
    assert part.column is not None
    assert isinstance(part.column.derivation, Computed)
    return Fraction(1, 10**part.column.derivation.term.scale) if _divides_by_sum(leaf) else part.coefficient


def _write_sentence(
    leaf: Comparison, part: SumPart, texts: tuple[str, ...], missed: Collection[str], kept: Collection[str]
) -> str:
    """Return a sentence with the clip, in the unit of the first comparison, and its effect on the answer."""
    column, unit = part.column, _find_unit(leaf, part)
    assert column is not None
    assert column.bounds is not None
    assert isinstance(column.derivation, Computed)
    ends = [
        (f"{convert_to_decimal(unit * Fraction(end)):f}", clip)
        for end, clip in zip(column.bounds, column.derivation.clipped, strict=True)
    ]
    (below, is_low), (above, is_high) = ends if unit > 0 else reversed(ends)
    clipped = [(above, "above")] * is_high + [(below, "below")] * is_low
    counts = [f"{end} at the {'most' if side == 'above' else 'least'}" for end, side in reversed(clipped)]
    effects: dict[str, list[str]] = {}
    for end, side in clipped:
        verb = " or ".join([*["missed"] * (side in missed), *["returned"] * (side in kept)])
        effects.setdefault(verb, []).append(f"{side} {end}")
    may = ", and ".join(f"{verb} where values {' or '.join(ends)} decide it" for verb, ends in effects.items())
    values = f"values of {column.comment}" if _divides_by_sum(leaf) else "values"
    names = " and ".join(map(spell_name, column.derivation.unbounded_columns))
    why = f"nothing bounds {names}" if names else "its divisor may be near 0"
    return (
        f"{' and '.join(texts)}: {values} count as {' and '.join(counts)}, as {why}. So a group may be {may}. WHERE "
        "or FILTER can set another range (SET keyhole.guard = 'refuse'; clips nothing)"
    )


def refuse_clips(formulas: Iterable[Having], clips: Clips, select: exp.Select | None) -> KeyholeError:
    """Return the refusal of a question that lacks clips and may not get any, with a hint that has them.

    Parameters:
        select: the question as it was written; None if it was rewritten.
    """
    found = next(
        one for formula in formulas for leaf in formula.list_comparisons() for one in _list_unbounded_parts(leaf)
    )
    column = found.part.column
    assert column is not None
    assert isinstance(column.derivation, Computed)
    low, high = clips[str(column.name)].fit(column.derivation.ends)
    written = None
    if select is not None and low is not None and high is not None:
        scale = 10**column.derivation.term.scale
        written = _write_clipped(select, column.comment or "", low / scale, high / scale)
    return refuse_unknown_range(
        column, position=found.comparison.position, hint=None if written is None else f"Instead you can ask: {written};"
    )


def _write_clipped(select: exp.Select, of: str, low: Fraction, high: Fraction) -> str | None:
    """Return the question's SQL with a clip around every summed use of an expression.

    Return None if it sums it nowhere.
    """
    made, is_found = select.copy(), False
    length = of.removeprefix("EXTRACT(EPOCH FROM ").removesuffix(")") if of.startswith("EXTRACT(EPOCH FROM ") else ""
    ends: Sequence[exp.Expr]
    for call in list(made.find_all(exp.Avg, exp.Sum)):
        for node in list(call.find_all(exp.Expr)):
            text = write_node(node)
            if text == of:
                ends = [exp.Literal.number(f"{convert_to_decimal(end):f}") for end in (low, high)]
            elif text == length and node.parent is call:
                ends = [exp.Interval(this=exp.Literal.string(_write_length(end))) for end in (low, high)]
            else:
                continue
            is_found = True
            _clip_node(call, node, ends)
            break
    return write_node(made) if is_found else None


def _write_length(seconds: Fraction) -> str:
    days = seconds / _DAY
    return f"{convert_to_decimal(days):f} days" if days.denominator == 1 else f"{convert_to_decimal(seconds):f} seconds"


def _clip_node(call: exp.Expr, node: exp.Expr, ends: Sequence[exp.Expr]) -> None:
    """Put a clip around a node in an aggregate, and restrict the aggregate to rows that have a value."""
    present = exp.Not(this=exp.Is(this=exp.Paren(this=node.copy()), expression=exp.Null()))
    clipped = exp.Least(this=exp.Greatest(this=node.copy(), expressions=[ends[0]]), expressions=[ends[1]])
    node.replace(clipped)
    if isinstance(call.parent, exp.Filter):
        where = call.parent.expression
        where.set("this", exp.and_(where.this, present, copy=False))
        return
    call.replace(exp.Filter(this=call.copy(), expression=exp.Where(this=present)))
