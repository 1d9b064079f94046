"""Tables published whole: what is counted, what is paid, what the files say, on both engines."""

import stat
import threading
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
from planner.catalog.catalog import SqlType
from planner.errors import KeyholeError
from proxy.cli.check import check
from proxy.open_policy.service import Service
from proxy.release.publication import Publication, PublicationRequest, TableMethod, plan_publication, publish_counts
from proxy.release.published_file import (
    PublishedColumn,
    PublishedTable,
    hash_file,
    lock_folder,
    make_draft_path,
    rename_draft,
    write_draft,
)
from proxy.release.unprotected import describe_disclosure, perturb_counts, publish_unprotected
from tests.seeded_noise import SeededNoise
from tests.worlds.house import VERIFIER, check_once, new_database

WARDS = ["A", "<b>é</b>", 'it\'s "odd"', "", "a | b", "\u202eright,\nleft"]
DRUGS = ["none", "心", "b\\c"]
Row = tuple[int | None, str | None, str | None]
ROWS: list[Row] = [
    (person, WARDS[(person + time) % 6], DRUGS[person * time % 3])
    for person in range(1, 61)
    for time in range(person % 5)
]
ROWS += [(None, "A", "none")] * 4 + [(3, "unlisted", "none"), (4, "A", None), (5, None, "none")]
POLICY = """\
[source]
url = "{source}"

[budget]
epsilon_per_predicate = {budget}
epsilon_per_unit = 1000
epsilon_per_query = 0.5

[tables.taken]
privacy_unit = {unit}
refresh = "{refresh}"
{bounding}

[tables.taken.columns.ward]
key = {{ values = {wards} }}

[tables.taken.columns.drug]
key = {{ values = {drugs} }}

[analysts.ada]
password = "{verifier}"
"""


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    create = "CREATE TABLE taken (person integer, ward text, drug text)"
    if request.param == "duckdb":
        path = tmp_path_factory.mktemp("taken") / "taken.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute(create)
            connection.executemany("INSERT INTO taken VALUES (?, ?, ?)", ROWS)
        yield f"duckdb:///{path}"
        return
    with new_database(request.getfixturevalue("postgres_url")) as url:
        with psycopg.connect(url) as owner:
            owner.execute(create)
            owner.cursor().executemany("INSERT INTO taken VALUES (%s, %s, %s)", ROWS)
        yield url


def _toml(values: list[str]) -> str:
    quoted = (value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for value in values)
    return "[" + ", ".join(f'"{value}"' for value in quoted) + "]"


def _serve(
    directory: Path, source: str, *, groups: int | None, budget: float = 1000.0, refresh: str = "explicit"
) -> Path:
    path = directory / "keyhole.toml"
    text = POLICY.format(
        source=source,
        budget=budget,
        refresh=refresh,
        unit='"row"' if groups is None else '"person"',
        bounding="" if groups is None else f"max_groups_per_unit = {groups}\nrows_per_unit = 4",
        wards=_toml(WARDS),
        drugs=_toml(DRUGS),
        verifier=VERIFIER,
    )
    path.write_text(text, encoding="utf-8")
    return check_once(path)


@pytest.fixture
def by_row(source: str, tmp_path: Path) -> Iterator[Service]:
    with Service.open(_serve(tmp_path, source, groups=None)) as opened:
        yield opened


@pytest.fixture
def by_person(source: str, tmp_path: Path) -> Iterator[Service]:
    with Service.open(_serve(tmp_path, source, groups=2)) as opened:
        yield opened


def _asked(**changes: Any) -> PublicationRequest:
    plain = PublicationRequest(
        table="taken",
        public=("ward",),
        sensitive="drug",
        method=TableMethod.TABLE,
        epsilon=Fraction(40),
        most_rows=1,
        retention=Fraction(1, 2),
        within=Fraction(3, 10),
        unsure=Fraction(3, 10),
        exact=False,
        name="published",
        why="a test",
    )
    return replace(plain, **changes)


def _plan(service: Service, asked: PublicationRequest) -> Publication:
    return plan_publication(asked, service.catalog, service.source.dialect)


def _count(service: Service, asked: PublicationRequest) -> Counter[tuple[str, str]]:
    planned = _plan(service, asked)
    counts = planned.counts
    found = planned.read_counts(service.source.read_counts(counts.sql, relations=counts.relations, timeout_ms=60_000))
    found = found.transpose(planned.places)
    return Counter({(WARDS[at[0]], DRUGS[at[1]]): int(found[at]) for at in zip(*np.nonzero(found), strict=True)})


PERTURBED = {"method": TableMethod.PERTURBED, "epsilon": None}
PUBLIC_ROWS = Counter((ward, drug) for _, ward, drug in ROWS if ward in WARDS and drug in DRUGS)


def test_every_row_with_public_values_is_counted_where_rows_are_units(by_row: Service) -> None:
    assert _count(by_row, _asked()) == PUBLIC_ROWS
    assert _count(by_row, _asked(most_rows=7)) == PUBLIC_ROWS


def test_what_no_budget_covers_counts_every_row_of_everybody(by_person: Service) -> None:
    """Nobody's as well."""
    assert _count(by_person, _asked(**PERTURBED)) == PUBLIC_ROWS


@pytest.mark.parametrize("most_rows", [1, 2])
def test_a_unit_counts_in_few_cells_with_few_rows(by_person: Service, most_rows: int) -> None:
    """In two cells at most, and as many rows of each as are asked for; who is in no more cells counts in all of his."""
    found = _count(by_person, _asked(most_rows=most_rows))
    own: dict[int, Counter[tuple[str, str]]] = defaultdict(Counter)
    for person, ward, drug in ROWS:
        if person is not None and ward in WARDS and drug in DRUGS:
            own[person][ward, drug] += 1
    bounded = {person: Counter({at: min(n, most_rows) for at, n in one.items()}) for person, one in own.items()}
    few = sum((one for one in bounded.values() if len(one) <= 2), Counter())
    assert all(found[at] >= count for at, count in few.items())
    assert found.total() == sum(sum(sorted(one.values(), reverse=True)[:2]) for one in bounded.values())
    assert found.total() < PUBLIC_ROWS.total()


def test_a_cell_pays_epsilon_and_a_unit_for_each_that_it_may_be_in(by_person: Service) -> None:
    """Noise of rate 40 is zero but for less than one draw in 1e17."""
    counts, released = publish_counts(by_person, _plan(by_person, _asked()))
    assert not released.is_repeated
    assert Counter({at: n for at, n in _by_value(counts).items() if n}) == _count(by_person, _asked())
    assert by_person.report_balances(None).unit_spent_nano == 80 * NANO
    (family,) = by_person.report_balances(None).families
    assert family.family.columns
    assert set(family.lost_nano) == {40 * NANO}


def _by_value(counts: Any) -> dict[tuple[str, str], int]:
    return {(WARDS[at[0]], DRUGS[at[1]]): int(counts[at]) for at in np.ndindex(counts.shape)}


def test_the_same_release_is_told_again_and_rows_are_made_of_it_for_nothing(by_row: Service) -> None:
    first, _ = publish_counts(by_row, _plan(by_row, _asked(epsilon=Fraction(1, 2))))
    again, told = publish_counts(by_row, _plan(by_row, _asked(epsilon=Fraction(1, 2), name="other", why="others")))
    rows, made = publish_counts(by_row, _plan(by_row, _asked(epsilon=Fraction(1, 2), method=TableMethod.ROWS)))
    assert (told.is_repeated, made.is_repeated) == (True, True)
    assert first.tolist() == again.tolist()
    assert rows.sum() == max(0, first.sum())
    assert rows.min() >= 0
    assert by_row.ledger.known_event_count == 2
    _, other = publish_counts(by_row, _plan(by_row, _asked(epsilon=Fraction(1, 4))))
    assert not other.is_repeated


def test_in_whatever_order_columns_are_named_it_is_one_release(by_row: Service) -> None:
    """Also with the other one as sensitive, which is a column like the others where noise is on each count; and rows
    are made of the counts before their columns are put in order."""
    half = Fraction(1, 2)
    first, _ = publish_counts(by_row, _plan(by_row, _asked(epsilon=half)))
    turned = _plan(by_row, _asked(epsilon=half, public=("drug",), sensitive="ward"))
    again, told = publish_counts(by_row, turned)
    assert told.is_repeated
    assert again.tolist() == first.T.tolist()
    assert [column.name for column in turned.columns] == ["drug", "ward"]
    assert [column.values for column in turned.columns] == [tuple(DRUGS), tuple(WARDS)]
    rows, _ = publish_counts(by_row, _plan(by_row, _asked(epsilon=half, method=TableMethod.ROWS)))
    made = replace(turned.request, method=TableMethod.ROWS)
    assert publish_counts(by_row, _plan(by_row, made))[0].tolist() == rows.T.tolist()
    assert by_row.ledger.known_event_count == 2


def test_of_two_for_the_last_budget_one_is_paid(source: str, tmp_path: Path) -> None:
    outcomes: list[str] = []

    def publish(epsilon: Fraction) -> None:
        together.wait()
        try:
            publish_counts(service, _plan(service, _asked(epsilon=epsilon)))
            outcomes.append("paid")
        except KeyholeError as refused:
            outcomes.append(refused.code)

    together = threading.Barrier(2, timeout=60)
    threads = [threading.Thread(target=publish, args=[Fraction(number, 10)]) for number in (6, 7)]
    with Service.open(_serve(tmp_path, source, groups=None, budget=1.0)) as service:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(outcomes) == ["KH310", "paid"]


def test_nothing_but_counts_leaves_the_source(by_person: Service) -> None:
    for asked in (_asked(), _asked(**PERTURBED)):
        sql = _plan(by_person, asked).counts.sql
        assert "AS counted" in sql.rpartition("-- how many rows each cell of each public group has")[2]
        assert ("md5" in sql) == (asked.epsilon is not None)


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"table": "nothing"}, "KH201"),
        ({"public": ("person",)}, "KH201"),
        ({"epsilon": Fraction(1, 10_000_000)}, "KH311"),
    ],
)
def test_what_cannot_be_published_is_refused_unspent(by_row: Service, changes: dict[str, Any], refusal: str) -> None:
    with pytest.raises(KeyholeError, match=refusal):
        _plan(by_row, _asked(**changes))
    assert by_row.ledger.known_event_count == 0


def test_more_cells_than_a_table_has_are_refused(source: str, tmp_path: Path) -> None:
    path = _serve(tmp_path, source, groups=None)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(_toml(WARDS), _toml([f"w{n}" for n in range(2001)])), encoding="utf-8")
    check(path, confirm=True)
    with Service.open(path) as service, pytest.raises(KeyholeError, match="KH315: 2,001 combinations"):
        _plan(service, _asked(method=TableMethod.SPS, epsilon=None))


def _written(service: Service, tmp_path: Path, asked: PublicationRequest, *, ending: str) -> Path:
    planned = _plan(service, asked)
    counts, _ = publish_counts(service, planned)
    name = None if asked.method is TableMethod.ROWS else "noisy_count"
    table = PublishedTable(planned.columns, counts, name)
    path = tmp_path / "releases" / f"published.{ending}"
    with lock_folder(path.parent):
        assert write_draft(table, path, "it's <all> of it") == hash_file(make_draft_path(path))
        rename_draft(path, "it's <all> of it")
    return path


def test_a_parquet_file_has_every_value_as_it_is(by_row: Service, tmp_path: Path) -> None:
    path = _written(by_row, tmp_path, _asked(), ending="parquet")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with duckdb.connect() as connection:
        rows = connection.execute("SELECT ward, drug, noisy_count FROM read_parquet(?)", [str(path)]).fetchall()
        ((told,),) = connection.execute(
            "SELECT decode(value) FROM parquet_kv_metadata(?) WHERE decode(key) = 'keyhole'", [str(path)]
        ).fetchall()
    assert [row[:2] for row in rows] == [(ward, drug) for ward in WARDS for drug in DRUGS]
    assert Counter({row[:2]: row[2] for row in rows if row[2]}) == PUBLIC_ROWS
    assert told == "it's <all> of it"
    assert sorted(one.name for one in path.parent.iterdir()) == [".lock", "published.parquet"]


def test_a_csv_file_is_read_by_postgresql_as_it_is(by_row: Service, tmp_path: Path, postgres_url: str) -> None:
    """With its sentence in a file beside it; repeated rows."""
    path = _written(by_row, tmp_path, _asked(method=TableMethod.ROWS), ending="csv")
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TEMPORARY TABLE published (ward text, drug text)")
        with connection.cursor().copy("COPY published FROM STDIN (FORMAT csv, HEADER)") as copy:
            copy.write(path.read_bytes())
        found = Counter(connection.execute("SELECT ward, drug FROM published").fetchall())
    assert found == PUBLIC_ROWS
    assert path.with_name("published.csv.txt").read_text(encoding="utf-8") == "it's <all> of it\n"


def test_no_file_is_ever_replaced_and_no_link_followed(tmp_path: Path) -> None:
    table = PublishedTable((PublishedColumn("a", SqlType.INTEGER, (1, 2)),), np.array([3, 4]), "n")
    path, outside = tmp_path / "releases" / "t.parquet", tmp_path / "outside"
    outside.write_text("mine")
    with lock_folder(path.parent):
        path.symlink_to(outside)
        write_draft(table, path, "")
        with pytest.raises(FileExistsError):
            rename_draft(path, "")
        assert hash_file(path) is None
        path.unlink()
        make_draft_path(path).unlink()
        make_draft_path(path).symlink_to(outside)
        write_draft(table, path, "")
        rename_draft(path, "")
    assert outside.read_text() == "mine"
    with duckdb.connect() as connection:
        assert connection.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall() == [(1, 3), (2, 4)]


def test_what_is_perturbed_keeps_who_is_there_and_sps_says_what_it_merged(by_row: Service) -> None:
    planned = _plan(by_row, _asked(**PERTURBED))
    counts = np.array([[400, 300, 100]] * 5 + [[0, 0, 900]])
    drawn = perturb_counts(planned, counts, noise=SeededNoise(1))
    assert drawn.counts.sum(axis=1).tolist() == counts.sum(axis=1).tolist()
    assert drawn.counts.tolist() != counts.tolist()
    sampled = perturb_counts(_plan(by_row, _asked(method=TableMethod.SPS, epsilon=None)), counts, noise=SeededNoise(2))
    assert sampled.columns[0].values == (" | ".join(WARDS[:5]), WARDS[5])
    assert sampled.columns[1].values == tuple(DRUGS)
    assert sampled.counts.sum() == pytest.approx(counts.sum(), rel=0.2)


def test_the_sentence_follows_from_public_numbers(by_row: Service) -> None:
    told = describe_disclosure(_plan(by_row, _asked(**PERTURBED)))
    assert "who (by their public columns) is in taken" in told
    assert "changed with probability 0.3333" in told  # (1 - p)(m - 1)/m, and 1 + pm/(1 - p)
    assert "by at most a factor 4," in told
    assert told.endswith("Keyhole's budgets do not cover this file.")
    sampled = describe_disclosure(_plan(by_row, _asked(method=TableMethod.SPS, epsilon=None)))
    assert "within 30 % with probability 0.9" in sampled
    assert "can tell a group's largest share" in sampled
    exact = describe_disclosure(_plan(by_row, _asked(method=TableMethod.SPS, epsilon=None, exact=True)))
    assert "with probability 0.3 at least" in exact
    assert "Chernoff" not in exact


def test_a_perturbation_is_drawn_once(by_person: Service, tmp_path: Path) -> None:
    """The file, its draft where a process died after the event, and nothing where both are gone."""
    planned, path = _plan(by_person, _asked(**PERTURBED)), tmp_path / "releases" / "published.parquet"
    made = publish_unprotected(by_person, planned, path, by="owner")
    assert (made.rows, made.is_repeated) == (PUBLIC_ROWS.total(), False)
    (event,) = by_person.ledger.owner.find_publications()
    assert (event.by, event.why, event.method) == ("owner", "a test", "perturbed")
    assert (event.file, event.file_hash) == ("published.parquet", hash_file(path))
    assert event.statement == describe_disclosure(planned)
    assert by_person.report_balances(None).unit_spent_nano == 0
    assert publish_unprotected(by_person, planned, path, by="owner").is_repeated
    assert made.types == (("ward", "text"), ("drug", "text"))
    path.rename(make_draft_path(path))  # as a process leaves it that dies between the event and the file's name
    assert publish_unprotected(by_person, planned, path, by="owner").file_hash == hash_file(path) == made.file_hash
    with pytest.raises(KeyholeError, match="KH317: the same was published before"):
        publish_unprotected(by_person, planned, path.with_name("other.parquet"), by="owner")
    path.write_bytes(b"something else")
    with pytest.raises(KeyholeError, match="KH317"):
        publish_unprotected(by_person, planned, path, by="owner")
    assert by_person.ledger.verify_everything() == 1


def test_a_draft_without_an_event_is_written_anew(by_person: Service, tmp_path: Path) -> None:
    """As a process leaves it that dies before the event."""
    planned, path = _plan(by_person, _asked(**PERTURBED)), tmp_path / "releases" / "published.parquet"
    with lock_folder(path.parent):
        make_draft_path(path).write_bytes(b"half of a file")
    made = publish_unprotected(by_person, planned, path, by="owner")
    assert made.file_hash == hash_file(path)
    assert not make_draft_path(path).exists()


def test_a_live_table_is_not_perturbed(source: str, tmp_path: Path) -> None:
    with Service.open(_serve(tmp_path, source, groups=None, refresh="live")) as service:
        planned = _plan(service, _asked(**PERTURBED))
        with pytest.raises(KeyholeError, match='KH317: "taken" is live'):
            publish_unprotected(service, planned, tmp_path / "releases" / "published.parquet", by="owner")
        assert service.ledger.known_event_count == 0
