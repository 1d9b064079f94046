"""Noise belongs to a functional's exact values: what they depend on is in its identity, and nothing else."""

from dataclasses import replace
from decimal import Decimal

from mechanisms.formula import TRUE, AnyOf, Cut
from planner.catalog.catalog import FixedKey
from planner.catalog.key_space import KeySpace
from planner.functionals.functional_identity import identify_functional
from planner.functionals.per_key_offsets import LIMIT
from planner.plan.question_identity import find_fingerprint, identify_paths
from planner.question.condition import Compare
from planner.question.question import Accuracy, Offsets, Question
from tests.in_turn import in_turn
from tests.planner.asked import asked
from tests.worlds.questions import CLIPPED, COUNTRIES, MONTHS, ROWS, count, question

ASKED = replace(
    question(TRUE, count(), table=CLIPPED),
    keys=KeySpace(columns=(CLIPPED.get_column("country"), CLIPPED.get_column("month")), values=(COUNTRIES, MONTHS)),
)
OWN = Offsets(key="month", steps=tuple(range(len(MONTHS))), text="own")


def identity(asked: Question, digest: str = "policy") -> str | None:
    """The identity of the one functional."""
    (found,) = identify_paths(asked, digest=digest)
    return found


@in_turn(
    "other",
    [
        replace(ASKED, formula=AnyOf((Cut(0, 5, above=True, tolerance=1), Cut(0, 2, above=False, tolerance=7)))),
        replace(ASKED, accuracy=Accuracy(fnr=0.2, fpr=0.3, tolerance="9", min_rows=3, mechanism="keyhole")),
        replace(ASKED, keys=KeySpace(columns=ASKED.keys.columns, values=(COUNTRIES[:1], MONTHS[1:]))),
        replace(ASKED, keys=KeySpace(columns=ASKED.keys.columns[::-1], values=(MONTHS, COUNTRIES))),
        replace(ASKED, functionals=(replace(count(), name="another name", unit_size=Decimal(2)),)),
        replace(ASKED, functionals=(replace(count(), offsets=OWN),)),
        replace(ASKED, functionals=(replace(count(), offsets=replace(OWN, steps=(9,) * len(MONTHS))),)),
        replace(ASKED, warnings=("something",)),
    ],
)
def test_what_leaves_the_values_alone(other: Question) -> None:
    assert identity(other) == identity(ASKED) is not None


MADE = Compare(column="country", operator="=", value=COUNTRIES[0])


@in_turn(
    "other",
    [
        replace(ASKED, where=MADE),
        replace(ASKED, table=ROWS),
        replace(ASKED, table=replace(CLIPPED, rows_per_unit=3)),
        replace(ASKED, table=replace(CLIPPED, groups_per_unit=7)),
        replace(ASKED, table=replace(CLIPPED, seed="other")),
        replace(ASKED, table=replace(CLIPPED, fixed=(FixedKey("month", MONTHS[:1]),))),
        replace(ASKED, table=replace(CLIPPED, fixed=(FixedKey("month", MONTHS[1:]),))),
        replace(ASKED, keys=KeySpace(columns=ASKED.keys.columns[:1], values=(COUNTRIES,))),
        replace(
            ASKED,
            keys=KeySpace(
                columns=(replace(CLIPPED.get_column("country"), domain=COUNTRIES[:2]), CLIPPED.get_column("month")),
                values=(COUNTRIES[:2], MONTHS),
            ),
        ),
        replace(ASKED, functionals=(replace(count(), sensitivity=count().sensitivity + 1),)),
        replace(ASKED, functionals=(replace(count(), unit_range=(0, 2)),)),
        replace(ASKED, functionals=(replace(count(), terms=(replace(count().terms[0], condition=MADE),)),)),
    ],
)
def test_what_changes_the_values(other: Question) -> None:
    assert identity(other) not in (identity(ASKED), None)


def test_another_policy_or_pin_is_another_path() -> None:
    assert identity(ASKED, digest="other") != identity(ASKED)


def test_two_of_one_question_have_no_path() -> None:
    """They differ in what is taken off per key: each has noise of its own, and they must not be refined as one."""
    twice = replace(ASKED, functionals=(count(), replace(count(), offsets=OWN)))
    assert identify_paths(twice, digest="policy") == (None, None)


def test_thresholds_too_far_apart_to_be_put_back_have_no_path() -> None:
    far = replace(OWN, steps=(LIMIT + 1, *OWN.steps[1:]))
    assert identity(replace(ASKED, functionals=(replace(count(), offsets=far),))) is None


def test_a_stored_answer_is_that_of_one_meaning() -> None:
    """What is left out of a fingerprint would be answered with another question's groups."""
    at_least = Cut(0, 5, above=True, tolerance=1)
    others = (
        ASKED,
        replace(ASKED, where=MADE),
        replace(ASKED, keys=KeySpace(columns=ASKED.keys.columns, values=(COUNTRIES[:1], MONTHS))),
        replace(ASKED, keys=KeySpace(columns=ASKED.keys.columns[::-1], values=(MONTHS, COUNTRIES))),
        replace(ASKED, table=replace(CLIPPED, groups_per_unit=7)),
        replace(ASKED, table=replace(CLIPPED, fixed=(FixedKey("month", MONTHS[:1]),))),
        replace(ASKED, functionals=(replace(count(), sensitivity=count().sensitivity + 1),)),
        replace(ASKED, functionals=(replace(count(), offsets=OWN),)),
        replace(ASKED, formula=at_least),
        replace(ASKED, formula=replace(at_least, cut=6)),
        replace(ASKED, formula=replace(at_least, tolerance=2)),
        replace(ASKED, formula=replace(at_least, above=False)),
        replace(ASKED, predicates=(at_least,)),
        replace(ASKED, accuracy=replace(ASKED.accuracy, fnr=0.01)),
        replace(ASKED, accuracy=replace(ASKED.accuracy, fpr=0.01)),
    )
    assert len(set(map(find_fingerprint, others))) == len(others)
    assert find_fingerprint(replace(ASKED, warnings=("something",))) == find_fingerprint(ASKED)


def test_the_mean_of_groups_means_is_not_that_of_all_rows() -> None:
    grouped = "SELECT country, avg(amount) AS a, avg(avg(amount)) OVER () AS m FROM sales GROUP BY country"
    made = asked(f"SELECT country FROM ({grouped}) q WHERE a > m", guard="add")
    (found,) = (one for one in made.functionals if one.pair is not None)
    assert found.pair is not None
    assert found.pair.averaged_groups == len(made.keys.values[0])
    of_rows = replace(found, pair=replace(found.pair, averaged_groups=0))
    assert identify_functional(found) != identify_functional(of_rows)
