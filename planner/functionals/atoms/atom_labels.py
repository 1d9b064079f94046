"""Descriptions of atoms for EXPLAIN: letters, error bands and literals."""

from fractions import Fraction

from mechanisms.formula import Formula, list_literals
from planner.aggregates.comparison import Comparison, Slack
from planner.functionals.atoms.collected import FormulaCollector
from planner.question.question import Atom
from planner.values.decimals import convert_to_decimal

_COUNTED = {Slack.THRESHOLD: "", Slack.ROWS: "% of rows", Slack.RECORD: "rows"}


def make_label(index: int) -> str:
    """Return the letter of an atom: A, B, ..., Z, AA, AB, ..."""
    letters = ""
    index += 1
    while index:
        index, letter = divmod(index - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


def describe_atom(
    number: int, comparison: Comparison, index: int, size: Fraction, formula: Formula, collected: FormulaCollector
) -> Atom:
    """Return the atom with this number for a comparison: its error band, literals and guard."""
    made = collected.functionals[index]
    step = size / (comparison.per_row or comparison.display_factor) / made.rows
    below = max((cut.tolerance for cut in list_literals(formula) if cut.above), default=0)
    beyond = max((cut.tolerance for cut in list_literals(formula) if not cut.above), default=0)
    threshold = comparison.origin + comparison.right_value / size * step
    return Atom(
        label=make_label(number),
        text=comparison.text,
        functional=index,
        lower=convert_to_decimal(threshold - below * step),
        upper=convert_to_decimal(threshold + beyond * step),
        literals=tuple((cut.cut, cut.above) for cut in list_literals(formula)),
        counted_unit=_COUNTED[comparison.slack],
        guard=comparison.base_text or collected.find_guard_text(comparison),
    )
