"""What bounds of a column change: sums and means read clipped values, and all that compares reads values as stored."""

from pathlib import Path

from proxy.cli.check import check
from proxy.open_policy.service import Service
from proxy.pipeline import stages
from tests.end_to_end.certainty import asked

POLICY = """\
[source]
url = "duckdb://"
[budget]
epsilon_per_predicate = 4
epsilon_per_query = 2
[tables.visits]
relation = "visits.csv"
privacy_unit = "row"
refresh = "static"
[tables.visits.columns.ward]
key = { values = ["A", "B"] }
[tables.visits.columns.age]
type = "integer"
bounds = [0, 110]
[tables.visits.columns.arrived]
type = "timestamp"
[tables.visits.columns.left_at]
type = "timestamp"
"""
ROWS = """\
ward,age,arrived,left_at
A,300,2026-01-01 00:00:00,2026-11-01 00:00:00
A,50,2026-01-10 00:00:00,2026-01-13 00:00:00
B,-40,2026-03-01 00:00:00,2026-01-01 12:00:00
B,20,infinity,2026-01-01 00:00:00
"""
CASES = (
    # the question behind SELECT ward FROM visits, and what is compared with its threshold, for A and B
    ("GROUP BY ward HAVING sum(age) > 60", (110 + 50, 0 + 20)),
    ("GROUP BY ward HAVING avg(age) > 60", (110 + 50 - 2 * 60, 0 + 20 - 2 * 60)),
    ("GROUP BY ward HAVING sum(age) FILTER (WHERE age > 200) > 160", (110, 0)),
    ("GROUP BY ward HAVING count(*) FILTER (WHERE age > 200) > 60", (1, 0)),
    ("WHERE age < 0 GROUP BY ward HAVING count(*) > 60", (0, 1)),
    ("GROUP BY ward HAVING max(age) > 200", (1, 0)),
    ("GROUP BY ward HAVING min(age) < 0", (0, 1)),
    # values whose range nobody declared, by thresholds
    ("GROUP BY ward HAVING avg(left_at::date - arrived::date) > 5", (25 + 3 - 2 * 5, -15 - 5)),
    ("GROUP BY ward HAVING sum(left_at::date - arrived::date) > 40", (4 + 3, -4)),
    ("WHERE left_at >= arrived GROUP BY ward HAVING avg(left_at::date - arrived::date) > 5", (25 + 3 - 2 * 5, 0)),
    # in steps of ten seconds
    ("GROUP BY ward HAVING avg(left_at - arrived) > interval '5 days'", ((25 + 3 - 2 * 5) * 8640, (-15 - 5) * 8640)),
    ("GROUP BY ward HAVING percentile_disc(0.5) WITHIN GROUP (ORDER BY age) > 200", (1 * 2 - 2, 0 - 2)),
)


def test_sums_and_means_alone_are_of_clipped_values(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text(ROWS, encoding="ascii")
    path = tmp_path / "keyhole.toml"
    path.write_text(POLICY, encoding="utf-8")
    check(path, confirm=False)
    with Service.open(path) as service:
        for clauses, expected in CASES:
            plan = stages.plan_asked_question(
                service, asked(service, f"SELECT ward FROM visits {clauses}", tolerance="50%")
            )
            read = service.source.read_aggregates(
                plan.rewritten,
                plan.question.keys,
                functionals=len(plan.question.functionals),
                timeout_ms=60_000,
            )
            assert tuple(read.values[0]) == expected, clauses
