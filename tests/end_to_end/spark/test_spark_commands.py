"""The owner's commands over a Spark source: a starter policy, prices, bounds, and what bounds leave out."""

import json
import tomllib
from pathlib import Path

import pytest

from planner.errors import KeyholeError
from proxy.cli.check import check
from proxy.cli.init import write_policy_from_source
from proxy.cli.presets import Unit
from proxy.cli.simulate import Sizes, simulate
from tests.end_to_end.spark.lake import write_lake_policy
from tests.proxy.sources.spark.engines import Sail, gate_before
from tests.worlds import shop
from tests.worlds.house import House, command

_SECRET = "hush-hush-hush"


def test_a_starter_policy(sail: Sail, lake: Path) -> None:
    names = (f"{lake}/sales.parquet", f"parquet.`{lake}/visits.parquet`")
    text = write_policy_from_source(sail.url, directory=lake, tables=names, unit=Unit.PERSON)
    written = tomllib.loads(text)
    assert written["source"] == {"url": sail.url, "engine": "sail", "skip_blocks": True}
    assert {name: table["relation"] for name, table in written["tables"].items()} == {
        "sales": names[0],
        "visits": names[1],
    }
    assert "# [tables.sales.columns.amount]   # numeric(10,2)" in text
    assert "north" not in text
    assert written["tables"]["visits"]["privacy_unit"] == "patient_id"


def test_a_starter_policy_names_the_token_and_does_not_hold_it(sail: Sail, lake: Path) -> None:
    with gate_before(sail, token=_SECRET) as gate:
        for url, environment in (
            (gate.url, {"KEYHOLE_SOURCE_TOKEN": _SECRET}),
            (f"{gate.url}/;user_id=reader;token={_SECRET}", {}),
        ):
            tables = (f"{lake}/sales.parquet",)
            text = write_policy_from_source(url, directory=lake, tables=tables, environment=environment)
            assert _SECRET not in text
            assert tomllib.loads(text)["source"]["token"] == "${KEYHOLE_SOURCE_TOKEN}"
            assert tomllib.loads(text)["source"]["url"] == url.replace(f";token={_SECRET}", "")


def test_nothing_to_write_of(sail: Sail, lake: Path) -> None:
    with pytest.raises(KeyholeError, match="lists no table") as caught:
        write_policy_from_source(sail.url, directory=lake)
    assert "--table" in str(caught.value.hint)
    for wrong, code in (("sales.csv", "KH002"), (f"{lake}/nothing.parquet", "KH006"), ("a/b", "KH002")):
        with pytest.raises(KeyholeError, match=code):
            write_policy_from_source(sail.url, directory=lake, tables=(wrong,))


def test_a_price_without_a_source(lake: Path, tmp_path: Path) -> None:
    path = write_lake_policy(tmp_path, lake, url="sc://nowhere.invalid", checked=False)
    sizes = Sizes(units=1000, keys=5, rows=None)
    assert simulate(path, shop.WARDS, given={}, sizes=sizes).plan.rewritten.dialect == "sail"
    dear = "SELECT store FROM sales WHERE note LIKE '%a%b' GROUP BY store HAVING count(*) > 1000"
    with pytest.raises(KeyholeError, match="KH214"):
        simulate(path, dear, given={}, sizes=sizes)


def test_a_stored_question_that_the_engine_cannot_answer_is_warned_of(sail: Sail, lake: Path, tmp_path: Path) -> None:
    path = write_lake_policy(tmp_path, lake, url=sail.url, checked=False)
    dear = "SELECT store FROM sales WHERE note LIKE '%a%b' GROUP BY store HAVING count(*) > 1000"
    path.write_text(f'{path.read_text()}\n[views.dear]\nsql = "{dear}"\n', encoding="utf-8")
    assert any("views.dear" in said and "KH214" in said for said in check(path, confirm=False).warnings)


def test_bounds_that_are_found_privately(sail: Sail, lake: Path, tmp_path: Path) -> None:
    path = write_lake_policy(tmp_path, lake, url=sail.url)
    found = command("bounds", path, "visits", "--keys", "ward", "--epsilon", "5", "--yes", "--why", "x")
    assert {one["of"] for one in found["bounds"]} >= {"groups"}


def test_what_bounds_leave_out(on_sail: House, on_files: House) -> None:
    measured = []
    for house in (on_sail, on_files):
        tables = json.dumps(command("check", house.policy, "--measure")["measured"]["tables"])
        measured.append(json.loads(tables, parse_float=lambda number: round(float(number), 6)))  # sums of doubles
    assert measured[0] == measured[1]
    assert [table["rows"] for table in measured[0]] == [7250, 1530]
