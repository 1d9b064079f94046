"""Rows that count, kept for later questions: the same integers, never another version's, and no trace of failures."""

import itertools
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import duckdb
import numpy as np
import numpy.typing as npt
import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from planner.catalog.catalog import FixedKey, Table
from planner.catalog.key_space import KeySpace
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.kept.named_steps import keep_steps, make_step
from planner.lower.scan import rewrite
from planner.question.condition import And, Compare
from planner.question.plan import Rewritten, Rollup
from planner.question.question import Measure, Question
from proxy.sources.duckdb_rollups import DATABASE, DuckDBStore
from proxy.sources.open import Source, open_source
from proxy.sources.pinned_relations import DuckDBPins
from proxy.sources.rollups import OFTEN, Rollups
from tests.effort import cases, examples, rounds
from tests.proxy.sources.oracle import Row, true_aggregates
from tests.proxy.sources.test_same_integers import crowd_question, different_values, some_functionals
from tests.proxy.sources.test_unit_rows import asked, by_hand, unit_question
from tests.proxy.sources.worlds import UNITS, Engines, crowd, functional, questions, rows, tables

_PHASES = [Phase.explicit, Phase.generate]
_SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
_SCRATCH = "keyhole_scratch"
_VERSIONS = map(str, itertools.count())
_CROWD = crowd(seed=11, size=400)


@pytest.fixture(scope="module")
def scratch(postgres_url: str) -> Iterator[str]:
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(f"DROP SCHEMA IF EXISTS {_SCRATCH} CASCADE; CREATE SCHEMA {_SCRATCH}")
        yield _SCRATCH
        owner.execute(f"DROP SCHEMA {_SCRATCH} CASCADE")


@pytest.fixture(scope="module", params=["scratch", "temporary"])
def keeping(request: pytest.FixtureRequest, engines: Engines, postgres_url: str, scratch: str) -> Iterator[Engines]:
    """Both engines with room for two rollups each."""
    kept = scratch if request.param == "scratch" else None
    postgres = open_source(postgres_url, directory=engines.folder, rollups=2, scratch=kept)
    postgres.list_relations()  # the pool's threads draw from `random` while they connect, which Hypothesis forbids
    duck = open_source("duckdb://", directory=engines.folder, rollups=2)
    yield replace(engines, duck=duck, postgres=postgres)
    postgres.close()
    duck.close()


def _ask(
    source: Source, question: Question, relation: str, *, version: str, stored: bool = True
) -> npt.NDArray[np.int64]:
    """`stored`: the relation is one of the source, with columns of types."""
    table = replace(question.table, relation=relation)
    rewritten = rewrite(replace(question, table=table), dialect=source.dialect)
    if not stored:
        steps = tuple(
            replace(step, kept_rows=None if step.kept_rows is None else replace(step.kept_rows, relations=()))
            for step in rewritten.steps
        )
        rewritten = replace(rewritten, relations=(), steps=steps)
    count = len(question.functionals)
    return source.read_aggregates(
        rewritten, question.keys, functionals=count, timeout_ms=60_000, version=version
    ).values


def _sources(engines: Engines) -> list[Source]:
    return [engines.duck, engines.postgres]


def _names(engines: Engines) -> set[str]:
    found = engines.writer.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (_SCRATCH,))
    return {name for (name,) in found}


def _tables(engines: Engines) -> int:
    return len(_names(engines))


@examples(60, quick=6, phases=_PHASES, suppress_health_check=_SLOW)
@given(question=questions(units=UNITS, different=False), found=rows(most=60))
def test_a_rollup_gives_what_the_scan_gave(keeping: Engines, question: Question, found: list[Row]) -> None:
    """Asked again when the table is gone: the integers can come from the rollup alone. There is none for several values
    of a fixed key."""
    if any(len(key.values) > 1 for key in question.table.fixed):
        assert rewrite(question, dialect=DUCKDB).rollup is None
        return
    expected, version = true_aggregates(question, found), next(_VERSIONS)
    relations = keeping.load(found)
    for source in _sources(keeping):
        np.testing.assert_array_equal(
            _ask(source, question, relations[source.dialect.name], version=version), expected, err_msg="scan"
        )
        source.wait_for_rollups()
    _remove(keeping, relations)
    for source in _sources(keeping):
        np.testing.assert_array_equal(
            _ask(source, question, relations[source.dialect.name], version=version), expected, err_msg="rollup"
        )


@examples(30, quick=6, phases=_PHASES, suppress_health_check=_SLOW)
@given(
    world=asked(),
    table=tables(units=UNITS),
    keys=st.sampled_from([("ward",), ("ward", "level"), ("level",)]),
    found=rows(most=60),
)
def test_a_rollup_gives_what_the_scan_gave_for_totals_of_units(
    keeping: Engines, world: Any, table: Table, keys: tuple[str, ...], found: list[Row]
) -> None:
    """A subquery per unit is answered from the same rows as a plain question by its keys."""
    sql, where, tested, meant = world
    question = unit_question(sql, table, keys)
    if len(question.functionals) < len(meant) or "DISTINCT" in sql:  # two spellings of one; no rollup has values
        return
    expected, version = by_hand(question, where, tested, meant, found), next(_VERSIONS)
    relations = keeping.load(found)

    def answers(source: Source) -> npt.NDArray[np.int64]:
        assert question.per_unit is not None
        bounded = replace(question.per_unit.table, relation=relations[source.dialect.name])
        per_unit = replace(question.per_unit, table=bounded)
        rewritten = rewrite(replace(question, per_unit=per_unit), dialect=source.dialect)
        assert rewritten.rollup is not None
        count = len(question.functionals)
        return source.read_aggregates(
            rewritten, question.keys, functionals=count, timeout_ms=60_000, version=version
        ).values

    for source in _sources(keeping):
        np.testing.assert_array_equal(answers(source), expected, err_msg="scan")
        source.wait_for_rollups()
    _remove(keeping, relations)
    for source in _sources(keeping):
        np.testing.assert_array_equal(answers(source), expected, err_msg="rollup")


class _CountingStore(DuckDBStore):
    """The engine's own store, that counts what it is told to build."""

    builds = 0

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self.read: dict[str, str] = {}

    def build(self, rollup: Rollup, *, kept: Mapping[str, str], timeout_ms: int) -> str:
        self.builds += 1
        self.read.update(kept)
        return super().build(rollup, kept=kept, timeout_ms=timeout_ms)


def test_a_rollup_that_did_not_fit_is_not_built_again_in_another_version() -> None:
    """One that fits is built for each version."""
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH ':memory:' AS {DATABASE}")
        store = _CountingStore(connection.cursor, pins=DuckDBPins(connection), most_rows=10)
        rollups = Rollups(store, most=2)
        for rows, builds in ((11, 1), (10, 3)):
            store.builds = 0
            made = Rollup("t", f"of{rows}", f"SELECT * FROM range({rows})", "range", "SELECT count(*) FROM rolled")
            for version in ("1", "2", "3"):
                for _ in range(2):
                    rewritten = Rewritten("duckdb", "SELECT 1", made)
                    rollups.answer(rewritten, version=f"{rows} {version}", timeout_ms=60_000, read=lambda sql, _: sql)
                    rollups.wait_for_rollups()
                useless = 1 if rows > 10 else 0
                assert rollups.count_by_state() == {"ready": 1 - useless, "building": 0, "useless": useless}
            assert store.builds == builds
        rollups.close()


def test_a_rollup_behind_several_steps_is_built_when_it_would_have_served_often() -> None:
    """Each version builds again. The second question reads the kept steps; so does what is built behind them."""
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH ':memory:' AS {DATABASE}")
        store = _CountingStore(connection.cursor, pins=DuckDBPins(connection), most_rows=10)
        rollups = Rollups(store, most=2)
        steps = (first := make_step("SELECT 1 AS x"), make_step(f"SELECT x + 1 AS x FROM {first.name}"))
        made = Rollup("t", "of", "SELECT 7 AS x", "x", "SELECT x FROM rolled")
        sql = f"SELECT sum(x) FROM (TABLE {steps[0].name} UNION ALL TABLE {steps[1].name}) AS s"
        rewritten = keep_steps(Rewritten("duckdb", sql, made), steps, table="t", dialect=DUCKDB)
        for version in ("1", "2"):
            store.builds = 0
            kept = [(2, True, True)] * (OFTEN - 2)
            for builds, scans, reads_rollups in ((2, True, False), *kept, (3, True, True), (3, False, True)):
                found = rollups.answer(rewritten, version=version, timeout_ms=60_000, read=lambda sql, _: sql)
                rollups.wait_for_rollups()
                assert (store.builds, found.is_scan, found.reads_rollups) == (builds, scans, reads_rollups)
            assert set(store.read) == {first.name}
            store.read.clear()
        rollups.close()


@pytest.mark.parametrize("room", [0, 1])
def test_a_rollup_of_too_many_rows_is_not_kept(
    engines: Engines, crowded: dict[str, str], postgres_url: str, scratch: str, room: int
) -> None:
    """With room for one row less than count only the list of crowded units is kept, and the table is read each time;
    with room for all it is not."""
    question = _counting()
    expected = true_aggregates(question, _CROWD)
    build = {dialect: _built(question, relation, dialect) for dialect, relation in crowded.items()}
    (count,) = engines.writer.execute(f"SELECT count(*) FROM ({build['postgres']}) AS built").fetchone() or (0,)
    before, most = _tables(engines), count - 1 + room
    postgres = open_source(postgres_url, directory=engines.folder, rollups=2, rollup_rows=most, scratch=scratch)
    duck = open_source("duckdb://", directory=engines.folder, rollups=2, rollup_rows=most)
    copy = crowded["duckdb"].split("'")[1]
    try:
        for source in (postgres, duck):
            for _ in range(2):
                asked_of = crowded[source.dialect.name]
                np.testing.assert_array_equal(_ask(source, question, asked_of, version="1"), expected)
                source.wait_for_rollups()
        assert _tables(engines) == before + 1 + room
        Path(copy).rename(f"{copy}.away")
        try:
            if room:
                np.testing.assert_array_equal(_ask(duck, question, crowded["duckdb"], version="1"), expected)
            else:
                with pytest.raises(KeyholeError):
                    _ask(duck, question, crowded["duckdb"], version="1")
        finally:
            Path(f"{copy}.away").rename(copy)
    finally:
        postgres.close()
        duck.close()


def _built(question: Question, relation: str, dialect: str) -> str:
    table = replace(question.table, relation=relation)
    rollup = rewrite(replace(question, table=table), dialect=DUCKDB if dialect == "duckdb" else POSTGRES).rollup
    assert rollup is not None
    return rollup.build


def _remove(engines: Engines, relations: dict[str, str]) -> None:
    Path(relations["duckdb"].split("'")[1]).unlink()
    engines.writer.execute("DROP TABLE visits")


@pytest.fixture(scope="module")
def crowded(engines: Engines) -> dict[str, str]:
    return engines.load(_CROWD, postgres="crowd")


@pytest.mark.parametrize(("unit", "cap", "groups"), cases(UNITS, [None, 2], [1, 3, 500], quick=12), ids=str)
def test_one_rollup_serves_every_filter_and_restriction(
    keeping: Engines, crowded: dict[str, str], unit: tuple[str, ...], cap: int | None, groups: int
) -> None:
    """Many rows a unit, so that totals are clipped; GROUP BY in either order."""
    asked = crowd_question(unit=unit, keys=("ward", "level"), cap=cap, groups=groups)
    asked = some_functionals(asked, among=(unit, cap, groups), share=rounds(1, quick=3))
    swapped = KeySpace(columns=asked.keys.columns[::-1], values=asked.keys.values[::-1])
    later = [
        asked,
        replace(asked, where=Compare("age", ">", 5)),
        replace(asked, where=Compare("person", "=", "ann"), keys=swapped),
        replace(asked, keys=KeySpace(columns=asked.keys.columns, values=(("süd",), (1, 5)))),
    ]
    expected = [true_aggregates(one, _CROWD) for one in later]
    for source in _sources(keeping):
        relation = crowded[source.dialect.name]
        names = {rewrite(one, dialect=source.dialect).rollup for one in later}
        assert len({rollup.name for rollup in names if rollup is not None}) == 1
        _ask(source, asked, relation, version="crowd")
        source.wait_for_rollups()
        for one, values in zip(later, expected, strict=True):
            np.testing.assert_array_equal(_ask(source, one, relation, version="crowd"), values)


@pytest.mark.parametrize(("cap", "groups"), [(None, 1), (2, 1), (None, 500), (2, 500)], ids=str)
def test_one_rollup_serves_every_value_of_a_fixed_key(
    keeping: Engines, crowded: dict[str, str], cap: int | None, groups: int
) -> None:
    """Each level is bounded as if a unit had rows in no other; where all rows count, grouping by level has the same."""
    share = rounds(1, quick=5)  # of different cases other functionals
    whole = crowd_question(unit=("person",), keys=("ward",), cap=cap, groups=groups)
    asked = some_functionals(whole, among=(cap, groups), share=share)
    fixed = [
        replace(
            asked,
            table=replace(asked.table, fixed=(FixedKey("level", (level,)),)),
            where=And((Compare("level", "=", level), *more)),
        )
        for level in (1, 5)
        for more in ((), (Compare("age", ">", 5),))
    ]
    whole = crowd_question(unit=("person",), keys=("level", "ward"), cap=cap, groups=groups)
    by_level = some_functionals(whole, among=(cap, groups), share=share)
    expected = {one: true_aggregates(one, _CROWD) for one in fixed}
    for source in _sources(keeping):
        relation, version = crowded[source.dialect.name], next(_VERSIONS)
        names = {_name(one, source) for one in fixed}
        assert len(names) == 1
        assert _name(asked, source) not in names
        assert (_name(by_level, source) in names) is (groups == 500)
        for _ in range(2):
            for one in fixed:
                found = _ask(source, one, relation, version=version)
                np.testing.assert_array_equal(found, expected[one])
            source.wait_for_rollups()


def _name(question: Question, source: Source) -> str:
    rollup = rewrite(question, dialect=source.dialect).rollup
    assert rollup is not None
    return rollup.name


@pytest.mark.parametrize("groups", [1, 3])
def test_the_rows_that_count_serve_different_values_too(keeping: Engines, crowded: dict[str, str], groups: int) -> None:
    """Under a row cap; where units' totals are clipped, or units are counted beside, nothing is kept."""
    asked = different_values(crowd_question(unit=("code",), keys=("ward", "level"), cap=2, groups=groups))
    assert rewrite(asked, dialect=DUCKDB).rollup is None
    served = replace(asked, functionals=asked.functionals[5:])
    expected, version = true_aggregates(served, _CROWD), next(_VERSIONS)
    for source in _sources(keeping):
        assert rewrite(served, dialect=source.dialect).rollup is not None
        for _ in range(2):
            found = _ask(source, served, crowded[source.dialect.name], version=version)
            np.testing.assert_array_equal(found, expected)
            source.wait_for_rollups()
    clipped = different_values(crowd_question(unit=("code",), keys=("ward", "level"), cap=None, groups=groups))
    assert rewrite(replace(clipped, functionals=clipped.functionals[5:]), dialect=DUCKDB).rollup is None


def test_another_version_reads_the_table_again(keeping: Engines) -> None:
    whole = crowd_question(unit=("person",), keys=("ward",), cap=None, groups=1)
    question = some_functionals(whole, among=(), share=rounds(1, quick=4))
    before, after = _CROWD[:200], _CROWD[200:]
    first, second = next(_VERSIONS), next(_VERSIONS)
    for source in _sources(keeping):
        relation = keeping.load(before)[source.dialect.name]
        _ask(source, question, relation, version=first)
        source.wait_for_rollups()
        moved = keeping.load(after)
        if source.dialect is DUCKDB:
            Path(moved["duckdb"].split("'")[1]).replace(relation.split("'")[1])
        old, new = (true_aggregates(question, found) for found in (before, after))
        assert (old != new).any()
        np.testing.assert_array_equal(_ask(source, question, relation, version=first), old)
        np.testing.assert_array_equal(_ask(source, question, relation, version=second), new)
        source.wait_for_rollups()
        np.testing.assert_array_equal(_ask(source, question, relation, version=second), new)


def test_a_step_is_kept_for_its_version_and_found_again_where_it_is_lost(
    keeping: Engines, crowded: dict[str, str], postgres_url: str
) -> None:
    """Its rows stand in a relation of their own, which changes under a version: answers show from where it was read."""
    rows_alone = crowd_question(unit=(), keys=("ward",), cap=None, groups=1)
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        for source in _sources(keeping):
            on_duckdb = source.dialect is DUCKDB
            shown = keeping.folder / f"shown{next(_VERSIONS)}.parquet"
            beside = f"read_parquet('{shown}')" if on_duckdb else "shown"

            def show(wards: str, shown: Path = shown, on_duckdb: bool = on_duckdb) -> None:
                made = f"SELECT ward FROM (VALUES {wards}) AS v(ward)"
                if on_duckdb:
                    shown.unlink(missing_ok=True)
                    duckdb.execute(f"COPY ({made}) TO '{shown}'")
                else:
                    owner.execute(f"DROP TABLE IF EXISTS shown; CREATE TABLE shown AS {made}".encode())

            inner = make_step(f"SELECT ward AS seen FROM {beside}")
            outer = make_step(f"SELECT seen FROM {inner.name} WHERE seen IS NOT NULL")
            relation = crowded[source.dialect.name]
            read = f"(SELECT v.* FROM {relation} AS v JOIN {outer.name} AS o ON v.ward = o.seen) AS r"
            question = replace(rows_alone, table=replace(rows_alone.table, steps=(inner, outer)))
            first, second = next(_VERSIONS), next(_VERSIONS)
            every, one = (
                true_aggregates(rows_alone, [row for row in _CROWD if row["ward"] in wards])
                for wards in (("süd", "nord", "ost"), ("süd",))
            )
            show("('süd'), ('nord'), ('ost'), (NULL)")
            np.testing.assert_array_equal(_ask(source, question, read, version=first, stored=False), every)
            source.wait_for_rollups()
            show("('süd')")
            np.testing.assert_array_equal(_ask(source, question, read, version=first, stored=False), every)
            np.testing.assert_array_equal(_ask(source, question, read, version=second, stored=False), one)
            source.wait_for_rollups()
            show("('nord'), (NULL)")
            np.testing.assert_array_equal(_ask(source, question, read, version=second, stored=False), one)
            if on_duckdb or not _tables(keeping):
                continue
            with psycopg.connect(postgres_url, autocommit=True) as other:
                for (name,) in other.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (_SCRATCH,)):
                    other.execute(f'DROP TABLE {_SCRATCH}."{name}"'.encode())
            show("('süd')")
            np.testing.assert_array_equal(_ask(source, question, read, version=second, stored=False), one)
        owner.execute("DROP TABLE shown")


def test_threads_at_once(keeping: Engines, crowded: dict[str, str]) -> None:
    """Several threads want the same two rollups; each is built once, and every answer is right."""
    whole = [crowd_question(unit=("code",), keys=(key,), cap=2, groups=1) for key in ("ward", "flag")]
    asked = [some_functionals(one, among=(), share=rounds(1, quick=4)) for one in whole]
    expected = [true_aggregates(question, _CROWD) for question in asked]
    version, before = next(_VERSIONS), _names(keeping)  # steps of other questions, which nobody asks again
    for source in _sources(keeping):
        wrong: list[int] = []

        def ask(source: Source = source, wrong: list[int] = wrong) -> None:
            for turn in range(6):
                found = _ask(source, asked[turn % 2], crowded[source.dialect.name], version=version)
                wrong.extend([turn] if (found != expected[turn % 2]).any() else [])

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        source.wait_for_rollups()
        assert wrong == []
    assert len(_names(keeping) - before) <= 2


def _counting(unit: tuple[str, ...] = ("person",)) -> Question:
    asked = crowd_question(unit=unit, keys=("ward",), cap=None, groups=1)
    return replace(asked, functionals=(functional(asked.table, Measure.ROWS, None, Compare("age", ">", 5)),))


def test_a_schema_that_cannot_be_written(engines: Engines, crowded: dict[str, str], postgres_url: str) -> None:
    """A missing schema, one without CREATE, and no right to temporary tables: the scan answers every time."""
    question = _counting()
    expected = true_aggregates(question, _CROWD)
    role, parts = "keyhole_rollup_reader", urlsplit(postgres_url)
    url = urlunsplit(parts._replace(netloc=f"{role}:{role}@{parts.netloc.rpartition('@')[2]}"))
    writer = engines.writer
    database = writer.info.dbname
    writer.execute(f"DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN PASSWORD '{role}'; CREATE SCHEMA closed")
    writer.execute(f"GRANT SELECT ON crowd TO {role}; GRANT USAGE ON SCHEMA closed TO {role}")
    writer.execute(f'REVOKE TEMPORARY ON DATABASE "{database}" FROM PUBLIC')
    try:
        for scratch in ("absent", "closed", None):
            source = open_source(url, directory=engines.folder, rollups=2, scratch=scratch)
            try:
                for _ in range(3):
                    np.testing.assert_array_equal(_ask(source, question, crowded["postgres"], version="1"), expected)
                    source.wait_for_rollups()
            finally:
                source.close()
    finally:
        writer.execute(f'GRANT TEMPORARY ON DATABASE "{database}" TO PUBLIC; DROP OWNED BY {role}; DROP ROLE {role}')
        writer.execute("DROP SCHEMA closed")


def test_a_rollup_that_vanishes(engines: Engines, crowded: dict[str, str], postgres_url: str, scratch: str) -> None:
    question = _counting()
    expected = true_aggregates(question, _CROWD)
    source = open_source(postgres_url, directory=engines.folder, rollups=2, scratch=scratch)
    try:
        _ask(source, question, crowded["postgres"], version="1")
        source.wait_for_rollups()
        for (name,) in engines.writer.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (scratch,)):
            engines.writer.execute(f'DROP TABLE {scratch}."{name}"')
        for _ in range(2):
            np.testing.assert_array_equal(_ask(source, question, crowded["postgres"], version="1"), expected)
    finally:
        source.close()


def test_the_scratch_schema_is_left_empty(
    engines: Engines, crowded: dict[str, str], postgres_url: str, scratch: str
) -> None:
    """Closing drops what was kept, a rollup and a list of crowded units; what a lost connection left behind goes with
    the next one's first rollup."""
    question = _counting()

    def kept() -> Source:
        source = open_source(postgres_url, directory=engines.folder, rollups=2, scratch=scratch)
        _ask(source, question, crowded["postgres"], version="1")
        source.wait_for_rollups()
        return source

    before = _tables(engines)
    lost = kept()
    assert _tables(engines) == before + 2
    engines.writer.execute(
        "SELECT pg_terminate_backend(CAST(split_part(tablename, '_', 3) AS integer), 5000) FROM pg_tables "
        "WHERE schemaname = %s ORDER BY tablename",
        (scratch,),
    )
    lost.close()
    assert _tables(engines) == before + 2
    found = kept()
    assert _tables(engines) == 2
    found.close()
    assert _tables(engines) == 0


def test_nothing_is_kept_where_bounding_chooses_nothing() -> None:
    asked = crowd_question(unit=("person",), keys=("ward",), cap=None, groups=1)
    rolled = rewrite(asked, dialect=DUCKDB).rollup
    assert rolled is not None
    for table in (
        replace(asked.table, unit=(), rows_per_unit=None),
        replace(asked.table, refresh="live"),
    ):
        functionals = (functional(table, Measure.ROWS, None, Compare("age", ">", 5)),)
        assert rewrite(replace(asked, table=table, functionals=functionals), dialect=DUCKDB).rollup is None
