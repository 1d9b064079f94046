"""Numbers and shares as they are typed: read exactly, or told in the form that is read."""

import doctest
import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.owner import typed_figures
from proxy.owner.typed_figures import read_epsilon, read_number, read_share
from tests.in_turn import in_turn


def test_the_examples_say_what_they_print() -> None:
    tried = doctest.testmod(typed_figures)
    assert (tried.attempted > 0, tried.failed) == (True, 0)


@in_turn(
    ("typed", "told"),
    [
        ("0,2", "write 0.2"),
        ("50%", "write 0.5"),
        ("12,5 %", "write 0.125"),
        ("1,000", "write 1000 without commas, or 1.000 with a decimal point"),
        ("12,345,678", "write 12345678 without commas"),
        ("epsilon=0,5", "write 0.5"),
        ("1_000", "write one such as 0.5"),
        ("much", "write one such as 0.5"),
        ("", "write one such as 0.5"),
        ("inf", "write one such as 0.5"),
        ("9" * 1000, "is not a number"),
    ],
)
def test_a_number_in_another_form_is_told_the_one_that_is_read(typed: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)) as refused:
        read_number(typed)
    assert len(str(refused.value)) < 200


@in_turn(
    ("typed", "told"),
    [
        ("5", "5 is no share between 0 and 1: write 5%"),
        ("0,05", "write 0.05"),
        ("1,5%", "write 1.5%"),
        ("12,5", "write 12.5%"),
        ("100%", "100% is no share between 0 and 1"),
        ("1", "1 is no share between 0 and 1"),
        ("0", "0 is no share between 0 and 1"),
        ("-3%", "-3% is no share between 0 and 1"),
        ("half", "write one such as 5% or 0.05"),
        ("%", "write one such as 5% or 0.05"),
    ],
)
def test_a_share_in_another_form_is_told_the_one_that_is_read(typed: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        read_share(typed)


@given(st.decimals(min_value="0.0001", max_value="99.9999", places=4))
def test_percent_is_a_hundredth_exactly(percent: Decimal) -> None:
    assert read_share(f"{percent}%") == read_share(f" {percent} % ") == Fraction(percent) / 100


@given(st.text(alphabet="0123456789.,%-e _", max_size=12))
def test_what_is_proposed_is_read(typed: str) -> None:
    """Whoever types what the refusal says types a number."""
    for read in (read_number, read_share):
        try:
            read(typed)
        except ValueError as error:
            if found := re.search(r": write (-?[\d.]+)", str(error)):
                read_number(found[1])


@pytest.mark.parametrize("typed", ["0", "-1", "1000.1"])
def test_an_epsilon_is_positive_and_no_slip_of_the_finger(typed: str) -> None:
    with pytest.raises(ValueError, match="more than 0, at most 1000"):
        read_epsilon(typed)
    assert read_epsilon("1000") == 1000
