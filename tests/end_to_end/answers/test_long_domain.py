"""A question by a key of many values does with each value only what numpy does: the rest was done for the column."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from planner.catalog import listed_values
from planner.lower import domain
from proxy.cli.check import check
from proxy.open_policy.service import Service
from proxy.pipeline import claim as charging
from proxy.pipeline import key_paths, stages
from tests.end_to_end.certainty import asked

POLICY = """\
[source]
url = "duckdb:///long.duckdb"
[ledger]
url = "sqlite:///keyhole.db"
[budget]
epsilon_per_predicate = 9
epsilon_per_query = 4
[tables.seen]
privacy_unit = "row"
refresh = "static"
[tables.seen.columns.day]
key = { range = ["2000-01-01", "2010-12-31"] }
"""


def test_texts_and_gaps_of_a_long_domain_are_computed_for_the_first_question_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with duckdb.connect(str(tmp_path / "long.duckdb")) as owner:
        owner.execute("CREATE TABLE seen AS SELECT DATE '2005-05-05' AS day FROM range(10000)")
    path = tmp_path / "keyhole.toml"
    path.write_text(POLICY, encoding="utf-8")
    check(path, confirm=False)
    called: Counter[str] = Counter()

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            called[name] += 1
            return function(*given)

        return call

    for module in (listed_values, charging):
        monkeypatch.setattr(module, "format_value", counted("format_value", module.format_value))
    monkeypatch.setattr(domain, "_find_next_value", counted("next_value", domain._find_next_value))
    with Service.open(path) as service:
        found = []
        for threshold in (5000, 5001, 5002, 5001):
            question = asked(service, f"SELECT day FROM seen GROUP BY day HAVING count(*) > {threshold}")
            answer = stages.answer(service, stages.plan_asked_question(service, question), question)
            assert ("2005-05-05",) in answer.keys.keys  # of thousands of others one may be wrong
            found.append(called.copy())
            called.clear()
    days = 4018
    assert days <= found[0]["format_value"] <= 2 * days
    assert found[1:] == [Counter(next_value=found[1]["next_value"])] * 3
    assert found[1]["next_value"] < 10
    assert key_paths.PATH_FORMAT
