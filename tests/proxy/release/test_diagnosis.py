"""Curves of scores: what is counted, what is paid and by whom, what is told, on both engines."""

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psycopg
import pytest

from accountant.charges import NANO
from mechanisms.audit.auditor import Neighbours, audit_subject, claim_always
from mechanisms.audit.noise_ahead import NoiseAhead
from mechanisms.diagnostics.score_histogram import ScoreHistogram
from mechanisms.formula import Integers
from planner.catalog.catalog import RELEASED_BY
from planner.errors import KeyholeError
from proxy.cli.check import check
from proxy.open_policy.service import Service
from proxy.release.charged import PaidRelease
from proxy.release.diagnosis import (
    METHODS,
    Diagnosis,
    DiagnosisKind,
    DiagnosisRelease,
    DiagnosisRequest,
    Method,
    make_diagnosis,
    plan_diagnosis,
)
from proxy.sources.protocol import Counts
from tests.effort import rounds
from tests.in_turn import in_turn
from tests.seeded_noise import SeededNoise
from tests.worlds.house import VERIFIER, check_once, new_database

MODELS = ("linear", "deep")
Row = tuple[int | None, str, float | None, int | None]
# person g is scored by one model or by two, once to three times by each, in hundredths
ROWS: list[Row] = [
    (g, model, (7 * g + 31 * time + 13 * len(model)) % 101 / 100, (g + time) % 2)
    for g in range(1, 81)
    for model in (("linear", "deep") if g % 3 else ("deep",))
    for time in range(1 + g % 3)
]
ROWS += [(None, "deep", 0.5, 1)] * 9  # nobody's
ROWS += [(g, "old", 0.5, 1) for g in range(1, 20)]  # of a model that is not public
ROWS += [(3, "deep", None, 1), (4, "deep", 0.4, None), (5, "deep", math.nan, 1), (6, "deep", 7.0, 1)]
POLICY = """\
[source]
url = "{source}"

[budget]
epsilon_per_predicate = {budget}
epsilon_per_unit = {budget}
epsilon_per_query = 0.5

[tables.scored]
privacy_unit = {unit}
refresh = "{refresh}"
{bounding}

[tables.scored.columns.person]

[tables.scored.columns.model]
key = {{ values = ["linear", "deep"] }}

[tables.scored.columns.score]
bounds = [0, 1]
grid = 0.01
{per_unit}

[tables.scored.columns.y]
bounds = [0, 1]
{per_unit}

[tables.scored.columns.late]

[tables.scored.columns.points]
bounds = [300, 850]
grid = 5
{points_per_unit}

[tables.scored.columns.price]
bounds = [-2, 10]
grid = 0.25
{per_unit}

[analysts.ada]
password = "{verifier}"
"""


def _sql_number(value: float | None) -> str:
    return "NULL" if value is None else f"'{value}'"


def _points(place: int) -> int:
    return 250 + 7 * place % 701  # beyond its bounds on either side


def _price(place: int) -> str:
    return f"{(137 * place % 14_000 - 3000) / 1000:.3f}"


def _statements(rows: list[Row]) -> Iterator[str]:
    yield (
        "CREATE TABLE scored (person integer, model text, score double precision, y integer, late boolean,"
        " points integer, price numeric(8, 3))"
    )
    for place, (person, model, score, y) in enumerate(rows):
        late = "NULL" if y is None else str(bool(y))
        values = f"{_sql_number(person)}, '{model}', {_sql_number(score)}, {_sql_number(y)}, {late}"
        yield f"INSERT INTO scored VALUES ({values}, {_points(place)}, {_price(place)})"


def _duckdb(path: Path, rows: list[Row]) -> str:
    with duckdb.connect(str(path)) as connection:
        for statement in _statements(rows):
            connection.execute(statement)
    return f"duckdb:///{path}"


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "duckdb":
        yield _duckdb(tmp_path_factory.mktemp("models") / "models.duckdb", ROWS)
        return
    with new_database(request.getfixturevalue("postgres_url")) as url:
        with psycopg.connect(url) as connection:
            for statement in _statements(ROWS):
                connection.execute(statement.encode())
        yield url


def _serve(
    directory: Path, source: str, *, groups: int | None = 1, budget: float = 100.0, refresh: str = "explicit"
) -> Path:
    path = directory / "keyhole.toml"
    path.write_text(
        POLICY.format(
            source=source,
            budget=budget,
            refresh=refresh,
            unit='"row"' if groups is None else '"person"',
            bounding="" if groups is None else f"max_groups_per_unit = {groups}\nrows_per_unit = 4",
            verifier=VERIFIER,
            per_unit="" if groups is None else "per_unit = [0, 4]",
            points_per_unit="" if groups is None else "per_unit = [0, 3400]",
        )
    )
    return check_once(path)


@pytest.fixture
def service(source: str, tmp_path: Path) -> Iterator[Service]:
    with Service.open(_serve(tmp_path, source)) as opened:
        yield opened


@pytest.fixture(scope="module")
def unasked(source: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One for all that release nothing."""
    with Service.open(_serve(tmp_path_factory.mktemp("unasked"), source)) as opened:
        yield opened


@pytest.fixture(scope="module")
def by_row(source: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The same where each row is a unit."""
    with Service.open(_serve(tmp_path_factory.mktemp("by row"), source, groups=None)) as opened:
        yield opened


def _asked(**changes: Any) -> DiagnosisRequest:
    plain = DiagnosisRequest(
        kind=DiagnosisKind.ROC,
        table="scored",
        score="score",
        outcome="y = 1",
        by=("model",),
        where="",
        epsilon=Fraction(20),
        method=Method.OURS,
        bins=101,
        most_rows=1,
        units=None,
    )
    return replace(plain, **changes)


def _plan(service: Service, asked: DiagnosisRequest) -> DiagnosisRelease:
    return plan_diagnosis(asked, service.catalog, service.source.dialect)


def _make(service: Service, asked: DiagnosisRequest) -> tuple[Diagnosis, PaidRelease]:
    return make_diagnosis(service, _plan(service, asked))


def _count(service: Service, asked: DiagnosisRequest) -> Counter[tuple[str, int, int]]:
    """By model, hundredth and outcome, as the source counts."""
    counts = _plan(service, asked).release.counts
    found = service.source.read_counts(counts.sql, relations=counts.relations, timeout_ms=60_000)
    models, cells = (asked.by and ("linear", "deep")) or ("",), counts.scored.axes[0].cells
    return Counter({(models[place // (2 * cells)], place // 2 % cells, place % 2): count for place, count in found})


def _cell(row: Row) -> tuple[int, int] | None:
    _, _, score, y = row
    if score is None or y is None or math.isnan(score):
        return None
    return round(100 * min(score, 1.0)), y


def test_rows_are_counted_where_each_is_a_unit(by_row: Service) -> None:
    """Without a score, an outcome or a public model a row counts nowhere; beyond the bounds it is in the last cell."""
    wanted = Counter((row[1], *cell) for row in ROWS if row[1] != "old" and (cell := _cell(row)) is not None)
    assert _count(by_row, _asked()) == wanted
    assert _count(by_row, _asked(outcome="late")) == wanted
    assert _count(by_row, _asked(outcome="CASE WHEN y > 0 THEN 1 ELSE 0 END", where="y IS NOT NULL")) == wanted
    mirrored = Counter({(model, 100 - cell, y): count for (model, cell, y), count in wanted.items()})
    assert _count(by_row, _asked(score="1 - score")) == mirrored
    linear = Counter({("", *at[1:]): count for at, count in wanted.items() if at[0] == "linear"})
    assert _count(by_row, _asked(by=(), where="model = 'linear' AND score < 2 -- all of them")) == linear


def _round(value: float, step: float, low: float, high: float) -> int:
    return math.floor(min(max(value, low), high) / step + 0.5)


@in_turn(
    ("score", "number"),
    [
        ("points", lambda points, price: points),
        ("-points", lambda points, price: -points),
        ("price", lambda points, price: price),
        ("0.5 * points - 4 * price", lambda points, price: 0.5 * points - 4 * price),
        ("points * price", lambda points, price: points * price),
        ("CASE WHEN price > 1 THEN points END", lambda points, price: points if price > 1 else None),
    ],
)
def test_numbers_of_every_type_are_in_their_cells(by_row: Service, score: str, number: Any) -> None:
    """Each clipped and on its grid before it is computed with; the cell is the whole steps from where cells begin."""
    asked = _asked(score=score, outcome="late", by=())
    axis = _plan(by_row, asked).scored_rows.axes[0]
    wanted: Counter[tuple[str, int, int]] = Counter()
    for place, row in enumerate(ROWS):
        exact = float(_price(place))
        points, price = 5 * _round(_points(place), 5, 300, 850), 0.25 * _round(exact, 0.25, -2, 10)
        found = number(points, exact if score.startswith("CASE") else price)
        if found is not None and row[3] is not None:
            steps = round(Fraction(found) / axis.number.step)
            wanted["", (steps - axis.start) // axis.width, row[3]] += 1
    assert _count(by_row, asked) == wanted


def _md5(*parts: str) -> str:
    return hashlib.md5("|".join(("keyhole/scored", *parts)).encode()).hexdigest()


def _counted_of_units(rows: list[Row], *, groups: int, most_rows: int, where: Any = lambda _: True) -> Any:
    """The same by the words of the statement: a unit's models before WHERE, then its first rows in each."""
    models: dict[int, set[str]] = defaultdict(set)
    cells: dict[tuple[int, str], Counter[int]] = defaultdict(Counter)
    for row in rows:
        person, model, *_ = row
        if person is None or model == "old":
            continue
        models[person].add(model)
        found = _cell(row)
        if found is not None and where(row):
            cells[person, model][2 * found[0] + found[1]] += 1
    counted: Counter[tuple[str, int, int]] = Counter()
    for person, known in models.items():
        ordered = sorted(known, key=lambda model: _md5(f"{len(model)}:{model}", str(person)))
        for model in ordered[:groups]:
            copies = [(cell, 1 + copy) for cell, count in cells[person, model].items() for copy in range(count)]
            copies.sort(key=lambda one: _md5(f"{len(model)}:{model}", str(person), *map(str, one)))
            counted.update((model, cell // 2, cell % 2) for cell, _ in copies[:most_rows])
    return counted


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("most_rows", [1, 2])
def test_of_a_unit_the_first_rows_in_its_first_groups_count(
    source: str, tmp_path: Path, groups: int, most_rows: int
) -> None:
    with Service.open(_serve(tmp_path, source, groups=groups)) as service:
        asked = _asked(most_rows=most_rows)
        assert _count(service, asked) == _counted_of_units(ROWS, groups=groups, most_rows=most_rows)
        wanted = _counted_of_units(ROWS, groups=groups, most_rows=most_rows, where=lambda row: row[3] == 1)
        assert _count(service, replace(asked, where="late")) == wanted


@pytest.mark.parametrize("groups", [1, 2])
def test_one_person_more_changes_few_counts_and_lowers_none(groups: int) -> None:
    """Of all persons, by the words of the statement, which the engines were held against."""
    whole = _counted_of_units(ROWS, groups=groups, most_rows=2)
    for person in range(1, 81):
        less = _counted_of_units([row for row in ROWS if row[0] != person], groups=groups, most_rows=2)
        assert not less - whole
        by_model = Counter(model for model, _, _ in (whole - less).elements())
        assert len(by_model) <= groups
        assert max(by_model.values(), default=0) <= 2


def test_through_the_whole_way_no_more_is_lost_than_is_paid(tmp_path: Path) -> None:
    """The counts of two databases, one with a person more, as DuckDB gives them, and what is released of them at
    epsilon 1 a group, two rows of a person. Samples: 5,000 of each, 40,000 at full size; false alarms 1e-6."""
    asked = _asked(epsilon=Fraction(1), bins=2, most_rows=2, by=(), score="score")
    noise = NoiseAhead(SeededNoise(81))

    def draws(name: str, rows: list[Row]) -> Any:
        folder = tmp_path / name
        folder.mkdir()
        with Service.open(_serve(folder, _duckdb(folder / "models.duckdb", rows))) as service:
            planned = _plan(service, asked)
            counts = planned.release.counts
            found = service.source.read_counts(counts.sql, relations=counts.relations, timeout_ms=60_000)

        def many(number: int) -> Integers:
            return np.array([_shape(planned, found) for _ in range(number)], dtype=np.int64)

        return many

    def _shape(planned: DiagnosisRelease, found: Counts) -> tuple[int, ...]:
        (one,) = planned.decide(found, noise).groups
        assert isinstance(one, ScoreHistogram)
        return (int(one.counts[1, 1].clip(-3, 5)),)

    few: list[Row] = [(1, "deep", 0.2, 0), (2, "deep", 0.9, 1)]
    more: list[Row] = [*few, *[(3, "deep", 0.8, 1)] * 5]
    pair = Neighbours(
        description="a person more or less",
        first=claim_always(draws("few", few), epsilon=1.0),
        second=claim_always(draws("more", more), epsilon=1.0),
    )
    report = audit_subject("diagnose", [pair], samples=rounds(40_000, quick=5_000))
    assert not report.is_flagged
    assert report.epsilon_lower > 0.3  # both rows of the person are in one count: the test sees them


def test_what_is_released_is_the_histogram_with_little_noise(service: Service) -> None:
    found, _ = _make(service, _asked())
    assert len(found.groups) == 2
    wanted = _count(service, _asked())
    for model, one in zip(("linear", "deep"), found.groups, strict=True):
        assert isinstance(one, ScoreHistogram)
        exact = np.array([[wanted[model, cell, y] for y in (0, 1)] for cell in range(101)])
        assert np.abs(one.counts - exact).max() <= 1  # of 404 draws at rate 20 one is 2 with probability 1e-15


def test_it_is_paid_once_by_each_group_and_by_a_unit_in_all_of_them(source: str, tmp_path: Path) -> None:
    with Service.open(_serve(tmp_path, source, groups=2)) as service:
        first, paid = _make(service, _asked())
        events = service.ledger.verify_everything()
        again, told = _make(service, _asked())
        assert told == replace(paid, is_repeated=True)
        assert again.to_bytes() == first.to_bytes()
        assert service.ledger.verify_everything() == events
        assert service.report_balances(None).unit_spent_nano == 40 * NANO
        (family,) = service.report_balances(None).families
        assert family.spent_nano == (20 * NANO, 20 * NANO)
        assert _make(service, _asked(bins=16))[1].is_repeated is False


def test_calibration_of_the_same_histogram_costs_nothing(service: Service) -> None:
    _make(service, _asked())
    found, paid = _make(service, _asked(kind=DiagnosisKind.CALIBRATION))
    assert paid.is_repeated
    assert isinstance(found.groups[0], ScoreHistogram)


def test_the_ledger_says_how_it_was_asked_and_why(service: Service) -> None:
    _make(service, _asked(why="the audit of March", where="score > 0.1"))
    (event,) = service.ledger.read_history(analyst=RELEASED_BY)
    assert event.wording is not None
    assert event.wording.text == (
        "keyhole diagnose roc scored --score 'score' --outcome 'y = 1' --epsilon 20 --method ours --by model"
        " --where 'score > 0.1' --bins 101 (why: the audit of March)"
    )


_PLOTS = [(plot, method) for plot, methods in METHODS.items() for method in methods]


@pytest.mark.parametrize(("plot", "method"), _PLOTS)
def test_every_method_is_kept_as_it_was_released(service: Service, plot: DiagnosisKind, method: Method) -> None:
    service.noise = SeededNoise(7)
    asked = _asked(kind=plot, method=method, bins=None, by=(), outcome="y")
    found, paid = _make(service, asked)
    assert paid.body == found.to_bytes()
    assert Diagnosis.from_bytes(paid.body).to_bytes() == paid.body
    assert len(found.groups) == 1
    assert service.report_balances(None).unit_spent_nano == 20 * NANO


def test_without_enough_budget_nothing_is_read_or_spent(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Service.open(_serve(tmp_path, source, budget=2)) as service:
        monkeypatch.setattr(type(service.source), "read_counts", _never)
        with pytest.raises(KeyholeError, match=r"KH310.*needs 20, left 2"):
            _make(service, _asked())
        assert service.ledger.known_event_count == 0


def _never(*_: Any, **__: Any) -> None:
    raise AssertionError("data were touched")


@in_turn(
    ("changes", "refusal"),
    [
        ({"table": "nix"}, 'KH201: the policy has no private table "nix"'),
        ({"by": ("weak",)}, 'KH201.*"weak"'),
        ({"by": ("person",)}, "KH202.*no public domain"),
        ({"score": "nothing"}, 'KH201.*"nothing"'),
        ({"score": "score * score * score / y"}, "KH203"),
        ({"score": "0.5"}, "KH314.*same value on every row"),
        ({"score": "score) > 0 OR sum(score"}, "KH204: the score or the outcome is not one expression"),
        ({"outcome": "sum(y)"}, "KH"),
        ({"outcome": "score"}, "KH314: score is neither a condition nor a number"),
        ({"outcome": "2 * y"}, "KH314"),
        ({"where": "random() < 0.5"}, "KH205"),
        ({"where": "model ="}, "KH"),
        ({"where": "1 = 1) GROUP BY model --"}, "KH"),
        ({"outcome": "y = 2"}, "KH314: y = 2 holds on no row that has the values which the policy declares"),
        ({"outcome": "y > 1"}, "KH314: y > 1 holds on no row"),
        ({"outcome": "y >= 0"}, "KH314: y >= 0 holds on every row"),
        ({"outcome": "y < 0 OR model = 'nix'"}, "KH314.*holds on no row"),
        ({"outcome": "score > 0.5 AND score < 0.25"}, "KH314.*holds on no row"),
        ({"outcome": "model = 'deep'", "where": "model = 'deep'"}, "KH314.*holds on every row"),
        ({"outcome": "model = 'linear'", "where": "model = 'deep'", "by": ()}, "KH314.*holds on no row"),
        ({"outcome": "CASE WHEN y = 2 THEN 1 ELSE 0 END"}, "KH314.*holds on no row"),
        ({"score": "CASE WHEN y = 7 THEN score END"}, "KH314.*holds on no row"),
        ({"where": "model = 'old'"}, "KH315: --where model = 'old' leaves no row"),
        ({"where": "model = 'old'", "by": ()}, "KH315.*leaves no row"),
        ({"where": "points < 300"}, "KH315.*leaves no row"),
        ({"kind": DiagnosisKind.CALIBRATION, "score": "score * 100"}, "KH314.*has values outside 0 to 1"),
        ({"epsilon": Fraction(1, 10**9)}, "KH311"),
        ({"epsilon": Fraction(900)}, "KH311"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_paid(
    unasked: Service, changes: dict[str, Any], refusal: str
) -> None:
    with pytest.raises(KeyholeError, match=refusal):
        _make(unasked, _asked(**changes))
    assert unasked.ledger.known_event_count == 0


def test_more_curves_than_anybody_looks_at_are_refused(source: str, tmp_path: Path) -> None:
    path = _serve(tmp_path, source)
    path.write_text(
        path.read_text().replace('{ values = ["linear", "deep"] }', f"{{ values = {[f'm{i}' for i in range(1001)]} }}")
    )
    check(path, confirm=True)
    with Service.open(path) as service, pytest.raises(KeyholeError, match="KH315: 1,001 groups"):
        _plan(service, _asked())


def test_a_failing_source_is_paid_and_says_nothing_of_itself(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = _plan(service, _asked())
    monkeypatch.setattr(type(planned.release.counts), "sql", "SELECT 1 / (person - person) FROM scored WHERE nonsense")
    with pytest.raises(KeyholeError, match="KH501") as refused:
        make_diagnosis(service, planned)
    assert "nonsense" not in str(refused.value) + str(refused.value.detail)
    assert service.report_balances(None).unit_spent_nano == 20 * NANO


def test_nothing_but_counts_by_public_place_leaves_the_source(unasked: Service) -> None:
    counts = _plan(unasked, _asked()).release.counts
    outer = re.split(r"^\)$", counts.sql, flags=re.MULTILINE)[-1]
    assert "SELECT place, ARRAY[place, n] AS counted" in outer
    found = unasked.source.read_counts(counts.sql, relations=counts.relations, timeout_ms=60_000)
    assert all(0 <= place < 2 * counts.scored.cells and count > 0 for place, count in found)


def test_in_whatever_order_groups_are_named_it_is_one_release(source: str, tmp_path: Path) -> None:
    path = _serve(tmp_path, source, groups=2)
    late = "[tables.scored.columns.late]\n"
    path.write_text(path.read_text().replace(late, late + "key = { values = [false, true] }\n"))
    check(path, confirm=True)
    with Service.open(path) as service:
        first, _ = _make(service, _asked(by=("model", "late"), outcome="score > 0.5"))
        asked = _asked(by=("late", "model"), outcome="score > 0.5")
        again, told = _make(service, asked)
        assert told.is_repeated
        assert _plan(service, asked).groups == tuple((late, model) for late in (False, True) for model in MODELS)
        for one, place in zip(again.groups, (0, 2, 1, 3), strict=True):
            other = first.groups[place]
            assert isinstance(one, ScoreHistogram)
            assert isinstance(other, ScoreHistogram)
            assert one.counts.tolist() == other.counts.tolist()
        assert service.ledger.known_event_count == 2
