"""What twenty analysts save by sharing noise, and what refreshing a dashboard costs: `python -m benchmarks.reuse`.

Twenty analysts ask ten questions each on the demo's sales, drawn from a seed, over countries and months, with
thresholds and tolerances of their own: about numbers of customers, or about four kinds of aggregates, one or two at a
time. A unit changes some of these by much, so that single thresholds have noise on blocks, which nobody can share,
where noise on the sum would cost far more. The same questions are asked with `keyhole.reuse` off and on, and where
analysts have caps; losses are the ledger's.
"""

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from statistics import fmean
from time import perf_counter

from accountant.charges import NANO
from deploy.demo.build import install_demo
from planner.catalog.catalog import Analyst
from planner.errors import KeyholeError
from proxy.cli.check import check
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.messages import Asked, read_bare_question

ANALYSTS = 20
EACH = 10
REFRESHES = 1000
CUSTOMERS = (
    ("count(DISTINCT customer_id)", (20, 30, 50, 80)),
    ("count(DISTINCT customer_id) FILTER (WHERE quantity > 10)", (15, 25, 40)),
)
AGGREGATES = (
    ("count(*)", (300, 500, 800, 1200)),
    ("count(DISTINCT customer_id)", (20, 30, 50, 80)),
    ("sum(amount)", (8_000, 12_000, 20_000, 40_000)),
    ("count(*) FILTER (WHERE quantity > 10)", (100, 200, 300)),
)
ROOM = {
    "epsilon_per_predicate = 4.0": "epsilon_per_predicate = 1000.0",
    "epsilon_per_unit = 8.0": "epsilon_per_unit = 1000.0",
    "epsilon_per_query = 2.0": "epsilon_per_query = 1000.0",
}


Choice = tuple[tuple[str, tuple[int, ...]], ...]


def draw_questions(aggregates: Choice, *, seed: int) -> list[tuple[str, str, str]]:
    """Analyst, question and tolerance, in the order in which they are asked."""
    chance = random.Random(seed)
    asked = []
    for number in range(ANALYSTS * EACH):
        chosen = chance.sample(aggregates, chance.choice((1, 1, 2)))
        formula = chance.choice((" AND ", " OR ")).join(f"{text} > {chance.choice(at)}" for text, at in chosen)
        sql = f"SELECT country, month FROM sales GROUP BY country, month HAVING {formula}"
        asked.append((f"analyst{number % ANALYSTS}", sql, chance.choice(("10%", "15%", "25%"))))
    return asked


@contextmanager
def open_demo(*, cap: bool) -> Iterator[Service]:
    """The demo with room for everything, and many analysts."""
    with tempfile.TemporaryDirectory() as directory:
        policy = install_demo(Path(directory))
        text = policy.read_text(encoding="utf-8")
        for old, new in ROOM.items():
            text = text.replace(old, new)
        password = next(line for line in text.splitlines() if line.startswith("password"))
        own = "epsilon_per_predicate = 1000.0\n" if cap else ""
        text += "".join(f"\n[analysts.analyst{number}]\n{password}\n{own}" for number in range(ANALYSTS))
        policy.write_text(text, encoding="utf-8")
        check(policy, confirm=True)
        with Service.open(policy) as service:
            yield service


def answer(service: Service, analyst: Analyst, sql: str, settings: dict[str, str | None]) -> None:
    """Ask one question in this process."""
    asked = Asked(
        question=read_bare_question(sql, service.catalog),
        settings=settings,
        parameters={},
        analyst=analyst,
        today=date(2011, 12, 10),
        is_utc=True,
    )
    pipeline.answer(service, pipeline.plan_asked_question(service, asked), asked)


def measure_losses(service: Service) -> tuple[float, float, float]:
    """The mean and the largest loss of a group, and of a unit over everything."""
    report = service.report_balances(None)
    groups: dict[tuple[str, ...], int] = {}
    for family in report.families:
        for key, amount in zip(family.list_keys(), family.lost_nano, strict=True):
            groups[key] = max(amount, groups.get(key, 0))
    values = list(groups.values())
    return fmean(values) / NANO, max(values) / NANO, report.unit_spent_nano / NANO


def ask_together(aggregates: Choice, *, reuse: str, cap: bool) -> None:
    """All analysts' questions, and what they cost everybody."""
    with open_demo(cap=cap) as service:
        touched = 0
        for name, sql, tolerance in draw_questions(aggregates, seed=7):
            try:
                answer(
                    service, service.find_analyst(name), sql, {"keyhole.tolerance": tolerance, "keyhole.reuse": reuse}
                )
            except KeyholeError as refused:
                print("refused:", refused.code)
        for each in service.ledger.read_history():
            touched += each.charge.shared
        mean, most, unit = measure_losses(service)
        own = max(each.most_spent_nano for each in service.report_balances(None).analysts) / NANO
        caps = ", analysts with caps" if cap else ""
        print(
            f"reuse {reuse}{caps}: mean loss of a group {mean:.3f}, largest {most:.3f}, of a unit {unit:.3f}; "
            f"largest of one analyst's own {own:.3f}; {touched} of {ANALYSTS * EACH} questions touched data"
        )


def ask_refreshed() -> None:
    """A dashboard of twenty questions, refreshed over and over on one data version."""
    with open_demo(cap=False) as service:
        dashboard = [sql for _, sql, _ in draw_questions(AGGREGATES, seed=8)[:20]]
        analyst = service.find_analyst("analyst0")
        for sql in dashboard:
            answer(service, analyst, sql, {})
        first, events = measure_losses(service), service.ledger.verify_everything()
        start = perf_counter()
        for _ in range(REFRESHES):
            for sql in dashboard:
                answer(service, analyst, sql, {})
        took = perf_counter() - start
        same = (first, events) == (measure_losses(service), service.ledger.verify_everything())
        print(
            f"{REFRESHES:,} refreshes of 20 questions: nothing lost or written: {same}; {took / REFRESHES:.3f} s each"
        )


if __name__ == "__main__":
    for title, chosen in (("numbers of customers", CUSTOMERS), ("four kinds of aggregates", AGGREGATES)):
        print(f"{title}:")
        for setting, with_caps in (("off", False), ("on", False), ("off", True), ("on", True)):
            ask_together(chosen, reuse=setting, cap=with_caps)
    ask_refreshed()
