"""What is told of a balance: one cap, the reader's own spending and what is left for the reader, alike everywhere."""

from collections.abc import Iterator
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner

from accountant.charges import NANO, Cells, Charge, Family, Spent
from planner.policy.file import Policy
from proxy.cli.check import check
from proxy.cli.main import app
from proxy.open_policy.accounts import find_limits
from proxy.open_policy.service import open_ledger
from proxy.report.analyst_shares import log_changed_shares
from tests.effort import PATIENCE_S
from tests.worlds.house import VERIFIER, House, command, opened

QUESTION = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > {}"
POLICY = """
[source]
url = "duckdb://"

[accuracy]
mechanism = "keyhole"
tolerance = "5%"

[budget]
epsilon_per_predicate = 30.0
epsilon_per_unit = 40.0
epsilon_per_query = 30.0

[tables.visits]
relation = "visits.csv"
privacy_unit = "patient"
refresh = "static"
max_groups_per_unit = 2
rows_per_unit = 3

[tables.visits.columns.ward]
key = {{ values = ["A", "B", "C"] }}

[analysts.ada]
password = "{verifier}"
token_sha256 = "{ada}"

[analysts.bob]
password = "{verifier}"
token_sha256 = "{bob}"
epsilon_per_predicate = 2.0
epsilon_per_unit = 3.0

[analysts.cy]
password = "{verifier}"
token_sha256 = "{cy}"
"""
Told = tuple[Decimal, Decimal, Decimal]


def install(tmp_path: Path) -> Path:
    """A source of which the command can open its own beside the one that serves."""
    visits = "".join(f"{patient},{'A' if patient % 3 else 'B'}\n" for patient in range(1500))
    (tmp_path / "visits.csv").write_text(f"patient,ward\n{visits}", encoding="ascii")
    tokens = {name: sha256(name.encode()).hexdigest() for name in ("ada", "bob", "cy")}
    path = tmp_path / "keyhole.toml"
    path.write_text(POLICY.format(verifier=VERIFIER, **tokens), encoding="utf-8")
    check(path, confirm=False)
    return path


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with opened(install(tmp_path)) as running:
        yield running


def in_sql(house: House, analyst: str, scope: str) -> Told:
    """The unit's line, or the line of the group that has lost most."""
    with house.connect(analyst) as connection:
        rows = connection.execute(
            "SELECT budget, spent_at_most, left_at_least FROM keyhole.budget_details WHERE scope = %s"
            " ORDER BY spent_at_most DESC, left_at_least LIMIT 1",
            [scope],
        ).fetchall()
    (line,) = rows
    return line[0], line[1], line[2]


def over_rest(house: House, analyst: str) -> dict[str, Any]:
    url = f"http://{house.addresses.host}:{house.addresses.rest_port}/v1/budget"
    document: dict[str, Any] = (
        httpx.get(url, headers={"Authorization": f"Bearer {analyst}"}, timeout=PATIENCE_S).raise_for_status().json()
    )
    return document


def everywhere(house: House, analyst: str, *, scope: str) -> Told:
    """What SQL tells, once REST and both forms of the command have told the same."""
    told = in_sql(house, analyst, scope)
    document = over_rest(house, analyst)
    assert command("budget", house.policy, "--as", analyst) == document
    part, left = (document["unit"], "left") if scope == "unit" else (document["families"][0], "left_at_least")
    assert tuple(round(Decimal(str(part[name])), 4) for name in ("cap", "spent_at_most", left)) == told
    printed = CliRunner().invoke(app, ["budget", "--policy", str(house.policy), "--as", analyst]).output
    cells = [cell.strip() for cell in printed.replace("│", "┃").split("┃")]
    written = [f"{told[0]:f}", f"{told[1]:.4f}", f"{told[2]:.4f}"]
    assert any(cells[place : place + 3] == written for place in range(len(cells))), printed
    return told


def ask(house: House, analyst: str, *thresholds: int) -> None:
    """On noise of its own each, so that amounts add up."""
    with house.connect(analyst) as connection:
        connection.execute("SET keyhole.reuse = 'off'")
        for threshold in thresholds:
            connection.execute(QUESTION.format(threshold).encode())


def grant(house: House, epsilon: str, *arguments: str) -> None:
    words = ["grant", epsilon, *arguments, "--why", "more", "--by", "kim", "--policy", str(house.policy)]
    assert CliRunner().invoke(app, words, catch_exceptions=False).exit_code == 0


def test_the_budget_is_the_cap_whoever_has_spent_what(house: House) -> None:
    """Before and after grants: what is told as spent is the own alone, and what others spent is missing from left."""
    ask(house, "ada", 200, 300)
    hers = in_sql(house, "ada", "unit")[1]
    assert hers > 0
    nothing = Decimal(0)
    for cap, bobs in ((Decimal(40), Decimal(3)), (Decimal(45), Decimal(4))):
        if cap > 40:
            grant(house, "5", "--cap", "unit")
            grant(house, "1", "--cap", "unit", "--analyst", "bob")
        assert everywhere(house, "ada", scope="unit") == (cap, hers, cap - hers)
        assert everywhere(house, "bob", scope="unit") == (bobs, nothing, bobs)
        budget, spent, left = everywhere(house, "cy", scope="unit")
        assert (budget, spent) == (cap, nothing)
        assert left <= cap - hers  # others' at its worst case, as bob has a cap of his own
        owner = command("budget", house.policy)["unit"]
        assert round(Decimal(str(owner["spent_at_most"])), 4) == hers
        assert owner["cap"] == cap
        assert round(Decimal(str(owner["left"])), 4) == cap - hers


def test_a_groups_budget_is_the_cap_too(house: House) -> None:
    ask(house, "ada", 200, 300)
    ask(house, "bob", 200)  # for nothing of the shared balance
    for more, bobs in ((Decimal(0), Decimal(0)), (Decimal("0.5"), Decimal("1.25"))):
        if more:
            grant(house, "0.5", "--cap", "predicate", "--table", "visits")
            grant(house, "1.25", "--cap", "predicate", "--analyst", "bob")
        cap, hers, left = everywhere(house, "ada", scope="group")
        assert (cap, left) == (30 + more, cap - hers)
        cap, his, left = everywhere(house, "bob", scope="group")
        assert (cap, left) == (2 + bobs, cap - his)
        assert 0 < his < hers


def test_the_budget_names_the_balance_that_has_least_left(house: House) -> None:
    """Bob's own caps are lower; what ada asks leaves less of everybody's than her none."""
    ask(house, "ada", 200)
    ask(house, "bob", 300)
    for analyst, whose in (("ada", "the balance of {} that all analysts share"), ("bob", "your own balance of {}")):
        expected = {"unit": whose.format("a privacy unit"), "grouping": whose.format("a group")}
        with house.connect(analyst) as connection:
            told = connection.execute("SELECT scope, what, limit_name FROM keyhole.budget ORDER BY 1 DESC").fetchall()
            assert told == [
                ("unit", "each patient, over all questions", expected["unit"]),
                ("grouping", "every group by ward", expected["grouping"]),
            ]
        printed = CliRunner().invoke(app, ["budget", "--policy", str(house.policy), "--as", analyst]).output
        assert all(name in printed for name in expected.values())


def test_check_and_a_reload_say_whom_a_cap_of_another_leaves_less(tmp_path: Path) -> None:
    """Ada's question came to 1 of the 3 that it could; while bob has caps, cy's share counts it at 3."""
    path = install(tmp_path)
    capped = path.read_text(encoding="utf-8")
    path.write_text(capped.replace("epsilon_per_predicate = 2.0\nepsilon_per_unit = 3.0\n", ""), encoding="utf-8")
    before, found = Policy.load(path), check(path, confirm=False)
    (said,) = (one for one in found.warnings if "cap of their own" in one)
    assert said.endswith("came to: today that is as much as before")
    whole = Family(table="visits", unit="patient", columns=(), filter="", version="1", immutable=frozenset())
    charge = Charge("q", "ada", whole, Cells(()), 3 * NANO, unit_epsilon_nano=3 * NANO, shared=True)
    catalog = found.pinning.catalog
    with open_ledger(before) as ledger:
        reservation = ledger.reserve(charge, find_limits(catalog, catalog.analysts[0]))
        ledger.commit(reservation, Spent.from_uniform(NANO, unit_epsilon_nano=NANO), None)
    path.write_text(capped, encoding="utf-8")
    found = check(path, confirm=False)
    (said,) = (one for one in found.warnings if "cap of their own" in one)
    assert said.startswith("an analyst has a cap of their own now, so what each has left counts others' questions at")
    assert said.endswith("worst case: cy has left of a privacy unit 37.0000, not 39.0000")
    with capture_logs() as logged:
        log_changed_shares(before, Policy.load(path), found.pinning.catalog)
        log_changed_shares(before, before, catalog)
    assert logged == [{"event": "analysts have another share left", "log_level": "info", "why": said}]
    assert not [one for one in check(path, confirm=False).warnings if "cap of their own" in one]


def test_a_line_for_each_table_and_set_of_keys_sums_up_its_groups(house: House) -> None:
    with house.connect() as connection:
        connection.execute("SET keyhole.reuse = off")
        connection.execute("SELECT ward FROM visits GROUP BY ward HAVING count(*) > 200")
        connection.execute("SELECT ward FROM visits WHERE ward = 'A' GROUP BY ward HAVING count(*) > 250")
        told = connection.execute(
            "SELECT what, budget, spent_at_most, left_at_least FROM keyhole.budget WHERE scope = 'grouping'"
        ).fetchall()
        (summed,) = connection.execute(
            "SELECT 'every group by ward', max(budget), max(spent_at_most), min(left_at_least)"
            " FROM keyhole.budget_details WHERE scope = 'group' AND family LIKE 'ward = %'"
        ).fetchall()
    assert told == [summed]
    assert summed[2] > 0
