"""The monitors of docs/monitors.md are policy that `keyhole check` accepts, at the prices that stand there."""

import re
from pathlib import Path

import pytest

from proxy.cli.check import check
from tests.worlds.house import VERIFIER

PAGE = (Path(__file__).parents[3] / "docs" / "monitors.md").read_text(encoding="utf-8")
CROWDED, BUSY = re.findall(r"^```toml\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
(GROWING,) = re.findall(r"^### Compared.*?^```sql\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
HORIZON = 'from = "2026-01-01"\nuntil = "2026-12-31"\n'
POLICY = """
[source]
url = "duckdb://"

[accuracy]
fnr = 0.05
fpr = 0.10
tolerance = "10%"

[budget]
epsilon_per_predicate = 4.0
epsilon_per_query = 2.0

[tables.visits.columns.ward]
key = {{ values = ["A", "B"] }}

[tables.visits.columns.day]
key = {{ range = ["2026-01-01", "2026-12-31"], step = "1 day" }}

[tables.visits.columns.seen_at]

[tables.visits.columns.arrived_at]

[analysts.ada]
password = "{verifier}"
"""


@pytest.fixture
def lines(tmp_path: Path) -> tuple[str, ...]:
    rows = "ward,day,seen_at,arrived_at\nA,2026-01-01,2026-01-01 08:00:00,2026-01-01 08:00:10\n"
    (tmp_path / "visits.csv").write_text(rows, encoding="ascii")
    table, _, crowded = CROWDED.partition("\n\n")
    declared = f'{table}\nrelation = "visits.csv"\narrived = "arrived_at"\n\n{crowded}\n{BUSY}{HORIZON}'
    declared += f'[monitors.growing]\nsql = """{GROWING}"""\nwindow = "day"\nevery = "1 hour"\n'
    declared += HORIZON.replace("01-01", "01-02")
    path = tmp_path / "keyhole.toml"
    path.write_text(declared + POLICY.format(verifier=VERIFIER), encoding="utf-8")
    return check(path, confirm=False).lines()


def test_the_monitors_of_the_page_are_policy_at_the_prices_that_it_names(lines: tuple[str, ...]) -> None:
    (crowded,) = (line for line in lines if line.startswith("monitor crowded"))
    assert crowded.endswith("each 24 looks; at most 0.18 epsilon a group and window")
    assert "24 looks, at most 0.18 epsilon" in " ".join(PAGE.split())
    (growing,) = (line for line in lines if line.startswith("monitor growing"))
    assert growing.endswith("each 24 looks; at most 0.49 epsilon a group and window, where a row counts in 2 windows")
    (busy,) = (line for line in lines if line.startswith("monitor busy"))
    assert busy.endswith(
        "cleared at once; at most 0.50 epsilon a group"
    )  # 20.2 of the table, by a tolerance of 40 rows
