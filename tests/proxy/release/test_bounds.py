"""Bounds that are found privately: what is counted, what is paid, what is told, on both engines."""

import re
import threading
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from accountant.charges import NANO
from accountant.errors import LedgerUnavailable
from planner.catalog.catalog import RELEASED_BY, Grouping, Table
from planner.errors import KeyholeError
from planner.lower.unit_statistics import BoundKind, UnitCounts, UnitStatistic
from planner.policy.file import Policy
from proxy.cli.bounds import BoundsReport
from proxy.open_policy.service import Service
from proxy.release.bounds import BoundsRequest, FoundBound, FoundBounds, find_bounds, plan_bounds
from proxy.release.charged import PaidRelease, check_affordable
from proxy.release.declared_bounds import find_declared_bound
from proxy.report.section import show_page
from proxy.sources.protocol import Counts
from tests.in_turn import in_turn
from tests.seeded_noise import SeededNoise
from tests.worlds.house import VERIFIER, check_once, new_database

_MONDAY = date(2026, 1, 5)
# household g is in 1 + g % 5 weeks, with 1 + g % 3 rows in each, of g % 7 - 2 euros
_ROWS: list[tuple[int | None, date, float]] = [
    (g, _MONDAY + timedelta(weeks=w), g % 7 - 2.0)
    for g in range(1, 101)
    for w in range(1 + g % 5)
    for _ in range(1 + g % 3)
]
_ROWS += [(None, _MONDAY, 3.0)] * 40  # nobody's
_ROWS += [(7, date(2030, 1, 7), 3.0)] * 30  # in no week that is public
POLICY = """\
[source]
url = "{source}"

[budget]
epsilon_per_predicate = {budget}
epsilon_per_unit = {budget}
epsilon_per_query = 0.5

[tables.baskets]
privacy_unit = {unit}
refresh = "{refresh}"
{bounding}

[tables.baskets.columns.household]

[tables.baskets.columns.bought]

[tables.baskets.columns.week]
expression = "date_trunc('week', bought)"
key = {{ range = ["2026-01-05", "2026-02-02"], step = "7 days" }}

[tables.baskets.columns.amount]
bounds = [-10, 20]
grid = 1
{per_unit}

[tables.baskets.columns.free]

[tables.baskets.columns.price]

[analysts.ada]
password = "{verifier}"
"""


def _statements() -> Iterator[str]:
    yield (
        "CREATE TABLE baskets (household integer, bought date, amount double precision, free double precision,"
        " price numeric(6, 2))"
    )
    for household, bought, amount in _ROWS:
        unit = "NULL" if household is None else household
        free = "'NaN'" if household == 3 else amount
        yield f"INSERT INTO baskets VALUES ({unit}, DATE '{bought}', {amount}, {free}, {amount * 1.25})"


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "duckdb":
        path = tmp_path_factory.mktemp("grocer") / "grocer.duckdb"
        with duckdb.connect(str(path)) as connection:
            for statement in _statements():
                connection.execute(statement)
        yield f"duckdb:///{path}"
        return
    with new_database(request.getfixturevalue("postgres_url")) as url:
        with psycopg.connect(url) as connection:
            for statement in _statements():
                connection.execute(statement.encode())
        yield url


def _serve(
    directory: Path,
    source: str,
    *,
    budget: float = 1000.0,
    refresh: str = "explicit",
    unit: str = '"household"',
    bounding: str = "max_groups_per_unit = 2\nrows_per_unit = 4",
) -> Path:
    path = directory / "keyhole.toml"
    path.write_text(
        POLICY.format(
            source=source,
            budget=budget,
            refresh=refresh,
            unit=unit,
            bounding=bounding,
            verifier=VERIFIER,
            per_unit="per_unit = [-50, 100]" if bounding else "",
        )
    )
    return check_once(path)


@pytest.fixture
def policy(source: str, tmp_path: Path) -> Path:
    return _serve(tmp_path, source)


@pytest.fixture
def service(policy: Path) -> Iterator[Service]:
    with Service.open(policy) as opened:
        yield opened


@pytest.fixture(scope="module")
def unasked(source: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One for all that release nothing."""
    with Service.open(_serve(tmp_path_factory.mktemp("unasked"), source)) as opened:
        yield opened


def _asked(**changes: Any) -> BoundsRequest:
    plain = BoundsRequest(
        table="baskets",
        keys=(("week",),),
        totals=("amount",),
        columns=("price",),
        epsilon=Fraction(300),
        cut=Fraction(1, 20),
        units=100,
        most={},
    )
    return replace(plain, **changes)


def _find(service: Service, asked: BoundsRequest) -> tuple[FoundBounds, PaidRelease]:
    return find_bounds(service, plan_bounds(asked, service.catalog, service.source.dialect))


def _quantile(numbers: Mapping[Any, float], share: float, candidates: tuple[int, ...]) -> int:
    most = int(share * 100)
    return next(one for one in candidates if sum(number > one for number in numbers.values()) <= most)


_PUBLIC = {_MONDAY + timedelta(weeks=w) for w in range(5)}
_PER_GROUP: dict[tuple[int, date], list[float]] = {}
for _household, _bought, _amount in _ROWS:
    if _household is not None and _bought in _PUBLIC:
        _PER_GROUP.setdefault((_household, _bought), []).append(_amount)


def _statistics() -> dict[BoundKind, dict[int, float]]:
    groups = Counter(household for household, _ in _PER_GROUP)
    found: dict[BoundKind, dict[int, float]] = {of: {} for of in BoundKind}
    for (household, _), amounts in _PER_GROUP.items():
        for of, number in (
            (BoundKind.GROUPS, groups[household]),
            (BoundKind.ROWS, len(amounts)),
            (BoundKind.HIGHEST_TOTAL, sum(amounts)),
            (BoundKind.LOWEST_TOTAL, -sum(amounts)),
        ):
            found[of][household] = max(number, found[of].get(household, -1e9))
    for unit, _, amount in _ROWS:
        if unit is not None:
            for of, number in ((BoundKind.HIGHEST_VALUE, amount), (BoundKind.LOWEST_VALUE, -amount)):
                found[of][unit] = max(1.25 * number, found[of].get(unit, -1e9))
    return found


@in_turn("of", BoundKind)
def test_units_beyond_each_candidate_are_those_counted_by_hand(unasked: Service, of: BoundKind) -> None:
    table = unasked.catalog.find_table("baskets")
    assert table is not None
    steps = (0, 1, 2, 3, 4, 5, 6, 9, 14)
    value = of in (BoundKind.HIGHEST_VALUE, BoundKind.LOWEST_VALUE)
    step = Fraction(1, 4) if value else Fraction(1)
    column = "price" if value else "amount" if of in (BoundKind.HIGHEST_TOTAL, BoundKind.LOWEST_TOTAL) else None
    statistic = UnitStatistic(of, () if value else ("week",), column, step, steps)
    counts = UnitCounts(table, unasked.source.dialect, (statistic,), counts_units=True)
    found = unasked.source.read_counts(counts.sql, relations=counts.relations, timeout_ms=60_000)
    numbers = _statistics()[of].values()
    assert found == (tuple(sum(number > float(one * step) for number in numbers) for one in steps), (100,))


def test_keys_may_be_expressions(unasked: Service) -> None:
    """Units by groups and rows are those counted by hand; the policy takes the keys as they were typed."""
    keys = ("amount >= 5", "extract(dow FROM bought)", "week")
    planned = plan_bounds(_asked(keys=(keys,), columns=()), unasked.catalog, unasked.source.dialect)
    counts = planned.release.counts
    found = unasked.source.read_counts(counts.sql, relations=counts.relations, timeout_ms=60_000)
    rows = Counter((unit, week, amount >= 5) for (unit, week), amounts in _PER_GROUP.items() for amount in amounts)
    of_unit: dict[int, list[int]] = {}
    for (unit, _, _), number in rows.items():
        of_unit.setdefault(unit, []).append(number)
    numbers = {
        BoundKind.GROUPS: [len(groups) for groups in of_unit.values()],
        BoundKind.ROWS: [max(groups) for groups in of_unit.values()],
    }
    by_of = dict(zip([one.kind for one in counts.statistics], zip(counts.statistics, found, strict=True), strict=True))
    for of, per_unit in numbers.items():
        statistic, beyond = by_of[of]
        assert statistic.keys == keys
        assert beyond == tuple(sum(number > one for number in per_unit) for one in statistic.candidates)
    declared = Grouping(("week",), 3, 2, (), ("amount >= 5", "extract(dow FROM bought)"))
    one = next(one for one in planned.decide((*found,), unasked.noise).bounds if one.kind is BoundKind.GROUPS)
    assert find_declared_bound(one, replace(counts.table, groupings=(declared,))) == 3


def test_nothing_but_counts_of_units_leaves_the_source(unasked: Service) -> None:
    planned = plan_bounds(_asked(), unasked.catalog, unasked.source.dialect)
    counts = planned.release.counts
    found = unasked.source.read_counts(counts.sql, relations=counts.relations, timeout_ms=60_000)
    assert [len(one) for one in found] == [len(one.candidates) for one in counts.statistics]
    assert all(0 <= count <= 100 for one in found for count in one)


def test_bounds_are_the_first_candidates_beyond_which_few_enough_units_lie(service: Service) -> None:
    planned = plan_bounds(_asked(), service.catalog, service.source.dialect)
    found, _ = find_bounds(service, planned)
    truth = _statistics()
    for one, statistic in zip(found.bounds, planned.release.counts.statistics, strict=True):
        scale = float(statistic.step)
        scaled = {unit: number / scale for unit, number in truth[one.kind].items()}
        sign = -1 if one.kind in (BoundKind.LOWEST_TOTAL, BoundKind.LOWEST_VALUE) else 1
        assert float(one.bound) == sign * scale * _quantile(scaled, 0.04, statistic.candidates)
        assert one.most_beyond <= 5


def test_it_is_paid_once_and_told_again_for_nothing(service: Service) -> None:
    first, paid = _find(service, _asked())
    events = service.ledger.verify_everything()
    assert _find(service, _asked()) == (first, replace(paid, is_repeated=True))
    assert service.ledger.verify_everything() == events
    report = service.report_balances(None)
    assert report.unit_spent_nano == 300 * NANO
    assert _find(service, _asked(cut=Fraction(1, 10)))[1].is_repeated is False


def test_the_ledger_says_how_it_was_asked_and_why(service: Service) -> None:
    _find(service, _asked(why="the first policy"))
    (event,) = service.ledger.read_history(analyst=RELEASED_BY)
    assert event.wording is not None
    assert event.wording.text is not None
    assert event.wording.text.startswith("keyhole bounds baskets --epsilon 300 --cut 5% --keys week --total amount")
    assert event.wording.text.endswith("(why: the first policy)")
    assert service.read_questions("ada") == ()


def test_without_enough_budget_nothing_is_read_or_spent(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Service.open(_serve(tmp_path, source, budget=2)) as service:
        monkeypatch.setattr(type(service.source), "read_counts", _never)
        with pytest.raises(KeyholeError, match=r"KH310.*needs 300, left 2"):
            _find(service, _asked())
        assert service.ledger.known_event_count == 0


def test_what_a_refusal_proposes_fits(source: str, tmp_path: Path) -> None:
    with Service.open(_serve(tmp_path, source, budget=400)) as service:
        _find(service, _asked(epsilon=Fraction(1000, 3)))
        with pytest.raises(KeyholeError, match=r"KH310.*left 66\.6666\)") as refused:
            _find(service, _asked())
        proposed = re.search(r"--epsilon ([0-9.]+),", refused.value.hint or "")
        assert proposed is not None
        planned = plan_bounds(_asked(epsilon=Fraction(proposed[1])), service.catalog, service.source.dialect)
        check_affordable(service, planned.release)


def _never(*_: Any, **__: Any) -> None:
    raise AssertionError("data were touched")


def test_what_fails_after_the_reservation_stays_spent(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(service.noise, "_bytes", _never)
        with pytest.raises(AssertionError):
            _find(service, _asked(epsilon=Fraction(250)))
    assert service.report_balances(None).unit_spent_nano == 250 * NANO
    assert len(service.ledger.list_open_reservations()) == 1
    with monkeypatch.context() as broken:
        broken.setattr(service.ledger, "commit", _gone)
        with pytest.raises(KeyholeError, match="KH502"):
            _find(service, _asked(epsilon=Fraction(200)))
    assert service.report_balances(None).unit_spent_nano == 450 * NANO
    _find(service, _asked(epsilon=Fraction(250)))  # the first one failed here, so nobody waits for it
    assert service.report_balances(None).unit_spent_nano == 700 * NANO


def _gone(*_: Any, **__: Any) -> None:
    raise LedgerUnavailable("gone")


def test_a_failing_source_is_paid_and_says_nothing_of_itself(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UnitCounts, "sql", "SELECT 1 / (household - household) FROM baskets WHERE nonsense")
    with pytest.raises(KeyholeError, match="KH501") as refused:
        _find(service, _asked())
    assert "nonsense" not in str(refused.value) + str(refused.value.detail)
    assert service.report_balances(None).unit_spent_nano == 300 * NANO


def test_new_data_between_reservation_and_reading_are_not_told(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = iter(["one", "one", "one", "two"])
    monkeypatch.setattr(service, "find_version", lambda _: next(versions))
    with pytest.raises(KeyholeError, match="KH501: the data version changed"):
        _find(service, _asked())
    assert service.report_balances(None).unit_spent_nano == 300 * NANO


def test_of_two_that_want_the_last_budget_one_passes(source: str, tmp_path: Path) -> None:
    with Service.open(_serve(tmp_path, source, budget=500)) as service:
        told: list[str] = []

        def find(cut: int) -> None:
            try:
                _find(service, _asked(cut=Fraction(cut, 100)))
                told.append("bounds")
            except KeyholeError as error:
                told.append(error.code)

        threads = [threading.Thread(target=find, args=(cut,)) for cut in (5, 6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(told) == ["KH310", "bounds"]
        assert service.report_balances(None).unit_spent_nano == 300 * NANO


def test_who_asks_for_what_is_under_way_does_not_pay_for_it_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, told = service.source.read_counts, []

    def read_meanwhile(*arguments: Any, **named: Any) -> Counts:
        monkeypatch.setattr(service.source, "read_counts", read)
        with pytest.raises(KeyholeError, match="KH313: the same release is under way"):
            _find(service, _asked())
        told.append(service.report_balances(None).unit_spent_nano)
        return read(*arguments, **named)

    monkeypatch.setattr(service.source, "read_counts", read_meanwhile)
    _find(service, _asked())
    assert told == [300 * NANO]


def test_a_live_table_is_paid_each_time(source: str, tmp_path: Path) -> None:
    with Service.open(_serve(tmp_path, source, refresh="live")) as service:
        for _ in range(2):
            assert not _find(service, _asked(epsilon=Fraction(400)))[1].is_repeated
        assert service.report_balances(None).unit_spent_nano == 800 * NANO


def test_units_are_counted_where_nobody_declares_them(service: Service) -> None:
    service.noise = SeededNoise(5)
    found, _ = _find(service, _asked(units=None))
    assert found.is_counted
    assert 95 <= found.units <= 100
    few, _ = _find(service, _asked(units=None, epsilon=Fraction(3)))
    assert few.bounds == ()
    assert few.cut is None


def test_where_no_unit_is_counted_the_release_says_so(service: Service) -> None:
    planned = plan_bounds(_asked(units=None, epsilon=Fraction(1, 100)), service.catalog, service.source.dialect)
    nobody = tuple((0,) * len(one.candidates) for one in planned.release.counts.statistics)
    # noise of a thousand units on a count of none, of which 4,606 are taken off
    found = planned.decide((*nobody, (0,)), SeededNoise(5))
    assert found == FoundBounds((), 0, is_counted=True, cut=None)
    assert FoundBounds.from_bytes(found.to_bytes()) == found


def test_single_rows_have_values_alone(source: str, tmp_path: Path) -> None:
    with Service.open(_serve(tmp_path, source, unit='"row"', bounding="")) as service:
        with pytest.raises(KeyholeError, match="KH202"):
            _find(service, _asked())
        found, _ = _find(
            service,
            _asked(
                epsilon=Fraction(200),
                keys=(),
                totals=(),
                units=None,
                columns=("price", "amount"),
                most={"amount": Decimal(64)},
            ),
        )
        assert [one.bound for one in found.bounds] == [Decimal(4), Decimal(-2), Decimal("5.12"), Decimal("-2.56")]
        assert found.units >= len(_ROWS) - 5
        assert service.report_balances(None).unit_spent_nano == 0


@in_turn(
    ("changes", "refusal"),
    [
        ({"table": "nix"}, 'KH201: the policy has no private table "nix"'),
        ({"keys": (("weak",),)}, 'KH201.*"weak"'),
        ({"keys": (("household",),)}, "KH202.*no public domain"),
        ({"keys": (("price > 3 AND sum(amount)",),)}, "KH202"),
        ({"keys": (("bought::date",),)}, "KH202.*no public domain"),
        ({"keys": (("extract(dow FROM week)",),)}, "KH202.*no public domain"),
        ({"keys": (("week; DROP TABLE baskets",),)}, "KH"),
        ({"keys": (), "columns": ()}, "KH202: nothing to bound is named"),
        ({"totals": ("price",)}, "KH203.*has no bounds"),
        ({"totals": ("week",)}, "KH203.*is not a number"),
        ({"columns": ("week",)}, "KH203.*is not a number"),
        ({"columns": ("free",)}, "KH312"),
    ],
)
def test_what_cannot_be_asked_is_refused(unasked: Service, changes: dict[str, Any], refusal: str) -> None:
    with pytest.raises(KeyholeError, match=refusal):
        plan_bounds(_asked(**changes), unasked.catalog, unasked.source.dialect)


def test_a_share_that_noise_hides_is_refused_with_what_works(unasked: Service) -> None:
    asked = _asked(epsilon=Fraction(2))
    with pytest.raises(KeyholeError, match="KH311") as refused:
        plan_bounds(asked, unasked.catalog, unasked.source.dialect).check_reachable()
    assert refused.value.hint is not None
    proposed = refused.value.hint.removeprefix("Ask with --epsilon ").split(",")[0]
    enough = replace(asked, epsilon=Fraction(proposed))
    plan_bounds(enough, unasked.catalog, unasked.source.dialect).check_reachable()


def test_a_double_goes_as_far_as_its_owner_says(service: Service) -> None:
    found, _ = _find(
        service, _asked(epsilon=Fraction(90), keys=(), totals=(), columns=("free",), most={"free": Decimal(1024)})
    )
    highest, lowest = found.bounds
    assert 4 <= highest.bound <= 6  # the next candidate may be a fifth further
    assert -3 <= lowest.bound <= -2


def test_what_is_printed_can_be_pasted_into_the_policy(service: Service, policy: Path) -> None:
    planned = plan_bounds(_asked(), service.catalog, service.source.dialect)
    found, released = find_bounds(service, planned)
    report = BoundsReport(planned, found, released, planned.release.table, service.catalog)
    snippet = tomllib.loads("\n".join(report._write_snippet()))
    assert snippet["tables"]["baskets"]["groupings"]["week"]["max_groups"] == 5
    lines = list(report.lines())
    assert lines[0] == "Bounds of one (household) in baskets: paid 300 epsilon"
    assert any("fit into a unit's budget of 1000" in line for line in lines)
    place = "[tables.baskets.columns.household]"
    groupings = "\n".join(report._write_snippet()).partition("[tables.baskets.columns")[0]
    text = policy.read_text().replace(place, f"{groupings}\n{place}")
    pasted = Policy.parse(text, path=policy)
    assert pasted.tables["baskets"].groupings["week"].max_groups == 5


def test_with_a_delta_a_release_is_charged_in_full_and_says_how_many_questions_fit(source: str, tmp_path: Path) -> None:
    """What a scan loses is pure, and counts as a sum beside questions that count by their divergences: a second one,
    which with the first is above the cap, does not fit whatever the delta is."""
    path = _serve(tmp_path, source, budget=500.0)
    path.write_text(path.read_text().replace("epsilon_per_query = 0.5", "epsilon_per_query = 0.5\ndelta = 1e-9"))
    with Service.open(path) as service:
        planned = plan_bounds(_asked(), service.catalog, service.source.dialect)
        found, released = find_bounds(service, planned)
        assert service.report_balances(None).unit_spent_nano == 300 * NANO
        with pytest.raises(KeyholeError, match="KH310"):
            _find(service, _asked(cut=Fraction(1, 10)))
        assert service.report_balances(None).unit_spent_nano == 300 * NANO
        assert service.ledger.verify_everything() == 2
        lines = list(BoundsReport(planned, found, released, planned.release.table, service.catalog).lines())
        (told,) = (line for line in lines if "fit into" in line)
        counted = re.search(
            r"; ([\d,]+) fit into a unit's budget of 500 but for a delta of 1e-09, ([\d,]+) without", told
        )
        assert counted is not None
        assert int(counted[1].replace(",", "")) > int(counted[2].replace(",", ""))


def test_in_whatever_order_they_are_named_they_are_one_release(service: Service) -> None:
    most = {"amount": Decimal(64)}
    one = _asked(keys=(("week",), ("household", "week")), totals=("amount",), columns=("price", "amount"), most=most)
    other = replace(one, keys=(("week", "household"), ("week",)), columns=("amount", "price"))
    catalog = replace(service.catalog, tables=tuple(map(_with_households, service.catalog.tables)))
    first, second = (plan_bounds(asked, catalog, service.source.dialect).release for asked in (one, other))
    assert first.identity == second.identity
    third = plan_bounds(replace(one, columns=("amount",)), catalog, service.source.dialect).release
    assert first.identity != third.identity


def _with_households(table: Table) -> Table:
    """The table with a public domain of its units."""
    columns = (replace(one, domain=(1, 2)) if one.name == "household" else one for one in table.columns)
    return replace(table, columns=tuple(columns))


def test_a_share_that_is_more_than_was_asked_is_rounded_up_and_no_other_is_promised(service: Service) -> None:
    planned = plan_bounds(_asked(units=None), service.catalog, service.source.dialect)
    wider = FoundBounds((), 95, is_counted=True, cut=0.12342)
    released = PaidRelease(wider.to_bytes(), "one", is_repeated=False)
    told = "\n".join(BoundsReport(planned, wider, released, planned.release.table, service.catalog).lines())
    assert "too few to cut 5 % only: each bound is for at most 12.35 %" in told
    assert (
        "At most 5 % (or the least share that can be told of so few units as are counted) of" in planned.release.promise
    )
    declared = plan_bounds(_asked(), service.catalog, service.source.dialect)
    assert declared.release.promise.startswith("At most 5 % of the privacy units lie beyond a bound")


def test_what_a_question_costs_is_told_also_of_units_of_several_columns(source: str, tmp_path: Path) -> None:
    with Service.open(_serve(tmp_path, source, unit='["household", "week"]')) as service:
        planned = plan_bounds(_asked(), service.catalog, service.source.dialect)
        bound = FoundBound(BoundKind.GROUPS, ("week",), None, Decimal(2), 2, is_loose=False, is_last=False)
        found = FoundBounds((bound,), 95, is_counted=False, cut=0.05)
        released = PaidRelease(b"", "one", is_repeated=False)
        report = BoundsReport(planned, found, released, planned.release.table, service.catalog)
        assert "  week: a question with a tolerance of 20 units costs " in "\n".join(report.lines())


def test_names_on_the_page_are_text(service: Service) -> None:
    planned = plan_bounds(_asked(), service.catalog, service.source.dialect)
    named = FoundBound(BoundKind.HIGHEST_VALUE, ("<b>k",), "<script>x", Decimal(3), 2, is_loose=True, is_last=True)
    released = PaidRelease(b"", "one", is_repeated=False)
    found = FoundBounds((named,), 95, is_counted=True, cut=0.05)
    table = planned.release.table
    hostile = (replace(table.columns[0], name="<b>k"), replace(table.columns[-1], name="<script>x"))
    named_so = replace(table, columns=(*table.columns, *hostile))
    report = BoundsReport(planned, found, released, named_so, service.catalog)
    page = show_page(report.sections(), title="<i>", is_private=False)
    assert "by &lt;b&gt;k: &lt;script&gt;x at most 3" in page
    assert not any(tag in page for tag in ("<b>", "<script", "<i>"))


def test_no_analyst_has_the_name_of_the_owners_releases(policy: Path) -> None:
    text = policy.read_text().replace("[analysts.ada]", f'[analysts."{RELEASED_BY}"]')
    with pytest.raises(KeyholeError, match=r"KH002.*is not a name that PostgreSQL clients can use"):
        Policy.parse(text, path=policy)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**20), Fraction(900)])
def test_noise_that_cannot_be_drawn_is_refused_before_anything_is_paid(service: Service, epsilon: Fraction) -> None:
    with pytest.raises(KeyholeError, match="KH311: noise of this epsilon cannot be drawn exactly"):
        _find(service, _asked(epsilon=epsilon, units=None))
    assert service.ledger.known_event_count == 0
