"""A question after parsing: resolved against the policy, every threshold an integer, nothing illegal left."""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from mechanisms.formula import Formula
from planner.catalog import Table
from planner.condition import Condition
from planner.keys import KeySpace


class Measure(StrEnum):
    """What a row adds to a functional."""

    ROWS = "rows"  # 1, for COUNT(*) and COUNT(x)
    UNITS = "units"  # 1 per privacy unit with at least one such row, for COUNT(DISTINCT unit)
    TOTAL = "total"  # scale * round(clip(x) / grid) - offset, for SUM (scale 1, offset 0) and the linear form of AVG


@dataclass(frozen=True, slots=True)
class Functional:
    """A bounded linear sum over the rows of a key that atoms compare, in integers.

    Only rows that satisfy `condition` (the aggregate's FILTER) and whose `column` is not NULL (nor NaN) count.
    `unit_range` clips a unit's total per key (default bounding); None for row units and under a row cap.
    `sensitivity` is the most one privacy unit changes the functional in one key. `unit_size` is how much one integer
    step is worth in the analyst's unit. `rows` is the group size for which an AVG's tolerance is meant (1 otherwise).
    """

    name: str  # as the analyst would write it: "count(*)", "sum(amount) FILTER (WHERE ...)", "avg(amount) - 20"
    measure: Measure
    column: str | None
    condition: Condition
    scale: int
    offset: int
    sensitivity: int
    unit_range: tuple[int, int] | None
    unit_size: Decimal
    rows: int


@dataclass(frozen=True, slots=True)
class Atom:
    """One comparison as the analyst wrote it, with the linear literals it became.

    `text` is what was written; `lower`, `upper` is the band in which errors are allowed, in the analyst's unit.
    """

    label: str  # "A", "B", ...
    text: str
    functional: int
    lower: Decimal
    upper: Decimal


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The contract asked for: rates per key, tolerance text as set, group size for AVG, mechanism by name.

    `most_positives` is the limit of a sparse vector, `public_knowledge` the text for MiM; other mechanisms have none.
    """

    fnr: float
    fpr: float
    tolerance: str
    min_rows: int
    mechanism: str
    most_positives: int | None = None
    public_knowledge: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A decision query; `formula` is in negation normal form over `functionals`, as typed, with guards where needed."""

    table: Table
    keys: KeySpace
    where: Condition
    functionals: tuple[Functional, ...]
    atoms: tuple[Atom, ...]
    formula: Formula
    accuracy: Accuracy
    warnings: tuple[str, ...]
