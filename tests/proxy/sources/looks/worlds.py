"""Random questions as looks, at windows that are a key of theirs and at windows that overlap."""

from dataclasses import replace
from datetime import date, datetime, timedelta

from hypothesis import assume
from hypothesis import strategies as st

from planner.catalog.catalog import Value
from planner.question.as_of import AsOf, Hopping
from planner.question.looks import look_at
from planner.question.question import Question
from tests.proxy.sources.worlds import MOMENTS, questions, sample

_WINDOWS: dict[str, tuple[Value, ...]] = {
    "born": (date(1900, 2, 28), date(2026, 1, 1), date(2026, 1, 5)),
    "month": (date(2025, 12, 1), date(2026, 1, 1), date(2026, 2, 1)),
    "day": (date(1, 1, 1), date(2026, 1, 1), date(2026, 1, 5), date(2026, 2, 28)),
    "hours": (datetime(2026, 1, 5, 7), datetime(2026, 2, 28, 12), datetime(9999, 12, 31, 23)),
    "week": (date(2025, 12, 29), date(2026, 1, 5)),
}


def _windows(horizon: tuple[Value, ...]) -> st.SearchStrategy[tuple[Value, ...]]:
    """All windows of a horizon, or one."""
    return st.one_of(st.just(horizon), st.sampled_from(horizon).map(lambda one: (one,)))


@st.composite
def looks(draw: st.DrawFn, *, units: tuple[tuple[str, ...], ...]) -> Question:
    """A question with a key that is a time, as a look at it."""
    question = draw(questions(units=units))
    times = [name for name in question.keys.names if name in _WINDOWS]
    assume(times)
    window = draw(sample(*times))
    found = _WINDOWS[window]
    horizon = found[: draw(st.integers(1, len(found)))]
    asked = draw(_windows(horizon))
    values = [
        asked if name == window else some for name, some in zip(question.keys.names, question.keys.values, strict=True)
    ]
    as_of = AsOf(
        column=draw(sample("visited", "visited", "born")),
        before=draw(sample(*MOMENTS[:5], datetime(2026, 1, 3), datetime(9999, 12, 31, 23, 59))),
        window=window,
        horizon=horizon,
        window_open_for=draw(sample(timedelta(0), timedelta(hours=1), timedelta(days=4), timedelta(40))),
    )
    return replace(question, keys=replace(question.keys, values=tuple(values)), as_of=as_of)


@st.composite
def overlapping(draw: st.DrawFn, *, units: tuple[tuple[str, ...], ...]) -> Question:
    """A question as a look at windows that overlap, or follow each other, or leave gaps."""
    question = draw(questions(units=units))
    hop = draw(sample(timedelta(hours=36), timedelta(days=1), timedelta(days=30), timedelta(microseconds=7)))
    length = hop * draw(sample(1, 2, 2.5, 4, 0.5))
    begin = draw(sample(datetime(2025, 12, 30), datetime(2026, 1, 5, 7, 30, 0, 119), datetime(1, 1, 1)))
    horizon = tuple(begin + i * hop for i in range(draw(st.integers(1, 5))))
    as_of = AsOf(
        column=draw(sample("visited", "visited", "born")),
        before=draw(sample(*MOMENTS[:5], datetime(2026, 1, 3), datetime(9999, 12, 31, 23, 59))),
        window="opened",
        horizon=horizon,
        window_open_for=draw(sample(length, length + timedelta(hours=1), timedelta(40))),
        hopping=Hopping(draw(sample("visited", "visited", "born")), length, hop),
    )
    asked = draw(_windows(horizon))
    return look_at(question, as_of, windows=asked)
