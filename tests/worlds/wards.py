"""A small house of its own: one CSV of 3,000 visits to ward A and 2 to ward B, a row being the privacy unit.

A threshold between 1,000 and 2,000 with 10 % tolerance is so far from both that another answer than ward A has a
probability below 1e-9 with one look.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path

from proxy.security import scram

PASSWORD = "wisdom"
ANALYSTS = ("ada", "bob", "cy")
TOKENS = {"ada": "ada-token", "bob": "bob-token"}
# what every explained question has in its document
EXPLAINED = {
    "formula",
    "minimised",
    "prime_implicants",
    "functionals",
    "keys",
    "mechanism",
    "worst_case_epsilon",
    "compared",
    "sql",
    "warnings",
}
QUESTION = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > {}"


def install(directory: Path) -> Path:
    """Write data and policy into `directory`; returns the policy's path. Nothing is pinned yet."""
    rows = [f"{number},A,{number % 90},2026-01-{number % 28 + 1:02}" for number in range(3000)]
    rows += ["3000,B,40,2026-01-05", "3001,B,41,2026-01-06"]
    (directory / "visits.csv").write_text("id,ward,age,day\n" + "\n".join(rows) + "\n", encoding="ascii")
    hashes = {name: sha256(token.encode()).hexdigest() for name, token in TOKENS.items()}
    verifiers = {name: _make_verifier(name) for name in ANALYSTS}
    path = directory / "keyhole.toml"
    path.write_text(
        f"""
[source]
url = "duckdb://"

[accuracy]
mechanism = "keyhole"
mechanisms = ["keyhole", "progressive", "tslm", "mim", "probe", "svt"]

[budget]
epsilon_per_predicate = 4.0
epsilon_per_query = 0.5

[limits]
statement_timeout_ms = 60000

[tables.visits]
relation = "visits.csv"
privacy_unit = "row"
refresh = "static"

[tables.visits.columns.id]

[tables.visits.columns.ward]
key = {{ values = ["A", "B", "[bold]C"] }}

[tables.visits.columns.age]
bounds = [0, 110]

[tables.visits.columns.day]
key = {{ range = ["2026-01-01", "2026-01-28"] }}

[analysts.ada]
password = "{verifiers["ada"]}"
token_sha256 = "{hashes["ada"]}"

[analysts.bob]
password = "{verifiers["bob"]}"
token_sha256 = "{hashes["bob"]}"
epsilon_per_predicate = 0.05

[analysts.cy]
password = "{verifiers["cy"]}"
""",
        encoding="utf-8",
    )
    return path


@cache
def _make_verifier(name: str) -> str:
    """The verifier of an analyst's password, by a salt that makes the policy one text, which is checked once."""
    return scram.make_verifier(PASSWORD, salt=f"{name:16}".encode(), iterations=4096)
