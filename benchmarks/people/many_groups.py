"""`make bench-groups`: how many questions fit the budget of households that are in each of 52 weeks, beside peers.

Every question counts other households (`count(DISTINCT household) FILTER (..) > c`) by week, over the PostgreSQL
endpoint, until one is refused. A household's balance is 8 with delta 1e-9, that of a week is 4. In the first world the
count of every week lies in the middle of the tolerance, where no test ends early. In the second one counts spread over
two decades.

Peers release a noisy count of each week and compare it with the threshold. Their noise is as wide as the same contract
allows. Google's dp-accounting says how many questions fit: as pure sums, by zero-concentrated privacy, or by the exact
privacy loss distribution of a list that is fixed beforehand.
"""

import argparse
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psycopg
from dp_accounting import PrivacyAccountant, dp_event
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant
from rich.console import Console
from rich.table import Table as Grid
from scipy.stats import norm

from deploy.demo.build import HERE
from proxy.cli.check import check
from proxy.observe.logs import log_to_standard_error
from proxy.open_policy.service import Service
from proxy.process.serve import serve_in_background

WEEKS, CAP, CELL_CAP, DELTA = 52, 8.0, 4.0, 1e-9
CONTRACTS = ((0.05, 0.1, 100), (0.01, 0.01, 100), (0.05, 0.1, 50))
"""False negative rate, false positive rate, tolerance in households."""

_POLICY = """
[accuracy]
fnr = {fnr}
fpr = {fpr}
tolerance = "{tolerance}"

[budget]
epsilon_per_predicate = {cell_cap}
epsilon_per_unit = {cap}
epsilon_per_query = {cell_cap}
delta = {delta:g}
{more}

[source]
url = "duckdb:///weeks.duckdb"

[tables.visits]
privacy_unit = "household"
refresh = "static"
max_groups_per_unit = {weeks}
rows_per_unit = {weeks}

[tables.visits.columns]
week = {{ key = {{ range = [1, {weeks}] }} }}
code = {{}}

"""
_ANALYST = "[analysts.demo]" + (HERE / "keyhole.toml").read_text(encoding="utf-8").partition("[analysts.demo]")[2]


@dataclass(frozen=True, slots=True)
class World:
    """Households by week: as many in each, or as many as the list says."""

    name: str
    households: tuple[int, ...]
    threshold: int


def make_worlds(tolerance: int) -> tuple[World, World]:
    """Return the worst world, in which every count is in the middle of the tolerance, and one of two decades."""
    threshold = 1000
    level = (threshold - tolerance // 2,) * WEEKS
    spread = tuple(round(100 * 100 ** (week / (WEEKS - 1))) for week in range(WEEKS))
    return World("at the threshold", level, threshold), World("two decades", spread, threshold)


def count_answered(
    world: World, contract: tuple[float, float, int], directory: Path, *, most: int, more: str = ""
) -> int:
    """Return how many questions of a world were answered, of a new ledger, before the first refusal.

    Parameters:
        most: the number of questions after which it ends.
        more: a further line of the policy's budget.
    """
    fnr, fpr, tolerance = contract
    with duckdb.connect(str(directory / "weeks.duckdb")) as connection:
        connection.execute("CREATE TABLE visits (household INTEGER, week INTEGER, code INTEGER)")
        for week, number in enumerate(world.households, start=1):
            connection.execute("INSERT INTO visits SELECT id, ?, 0 FROM range(?) AS t(id)", [week, number])
    path = directory / "keyhole.toml"
    path.write_text(
        _POLICY.format(
            fnr=fnr, fpr=fpr, tolerance=tolerance, cell_cap=CELL_CAP, cap=CAP, delta=DELTA, weeks=WEEKS, more=more
        )
        + _ANALYST,
        encoding="utf-8",
    )
    check(path, confirm=False)
    with (
        Service.open(path) as service,
        serve_in_background(service, host="127.0.0.1", port=0, rest_port=0) as addresses,
        psycopg.connect(
            f"host={addresses.host} port={addresses.port} dbname={addresses.database} user=demo password=demo",
            autocommit=True,
        ) as connection,
    ):
        for asked in range(most):
            # no household has the code, so each count is of all households, and no two questions are the same
            sql = f"""SELECT week FROM visits GROUP BY week
                HAVING count(DISTINCT household) FILTER (WHERE code <> {asked + 1}) > {world.threshold}"""
            try:
                connection.execute(sql.encode()).fetchall()
            except psycopg.Error as refusal:
                if (refusal.diag.message_primary or "")[:5] not in ("KH301", "KH305"):
                    raise
                return asked
        return most


def count_peers(contract: tuple[float, float, int]) -> dict[str, int]:
    """Return how many questions of the same contract fit the balance with a peer's noise and accounting."""
    fnr, fpr, tolerance = contract
    laplace = tolerance / (math.log(1 / (2 * fnr)) + math.log(1 / (2 * fpr)))
    gauss = tolerance / float(norm.isf(fnr) + norm.isf(fpr))
    noise = dp_event.GaussianDpEvent(gauss / math.sqrt(WEEKS))
    values = dp_event.SelfComposedDpEvent(dp_event.LaplaceDpEvent(laplace), WEEKS)
    most_rho = (math.sqrt(math.log(1 / DELTA) + CAP) - math.sqrt(math.log(1 / DELTA))) ** 2
    return {
        "Laplace, pure": math.floor(CAP * laplace / WEEKS),
        "Laplace, exact list": _count_fits(lambda: PLDAccountant(value_discretization_interval=1e-3), values),
        "Gaussian, zCDP": math.floor(most_rho * 2 * gauss**2 / WEEKS),
        "Gaussian, Rényi": _count_fits(RdpAccountant, noise),
        "Gaussian, exact list": _count_fits(lambda: PLDAccountant(value_discretization_interval=1e-3), noise),
    }


def _count_fits(make: Callable[[], PrivacyAccountant], question: dp_event.DpEvent) -> int:
    """Return the largest number of equal questions whose epsilon at `DELTA` is at most the cap."""
    low, high = 0, 256
    while high - low > 1:
        middle = (low + high) // 2
        if make().compose(question, middle).get_epsilon(DELTA) <= CAP:
            low = middle
        else:
            high = middle
    return low


def main() -> None:
    """Print both worlds' numbers for each contract, and the peers'."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.people.many_groups", description=__doc__)
    parser.add_argument("--most", type=int, default=300, help="the number of questions after which it ends")
    given = parser.parse_args()
    log_to_standard_error("warning")
    grid = Grid("rates, tolerance", "counted", "Keyhole", "weeks by curve", *count_peers(CONTRACTS[0]))
    for contract in CONTRACTS:
        peers = count_peers(contract)
        for world in make_worlds(contract[2]):
            found = []
            for more in ("", f"delta_per_cell = {DELTA:g}"):
                with tempfile.TemporaryDirectory() as directory:
                    found.append(count_answered(world, contract, Path(directory), most=given.most, more=more))
            grid.add_row(
                f"{contract[0]:g}/{contract[1]:g}, {contract[2]}", world.name, *map(str, [*found, *peers.values()])
            )
    Console(width=140).print(grid)


if __name__ == "__main__":
    main()
