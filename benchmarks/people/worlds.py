"""Three owners: single bookings, customers who are in few groups, households that are in many weeks.

Bookings and households are drawn from a seed, with the shapes of real ones: countries and products fall off as in
Zipf's law, seasons come and go, most households shop in one or two stores and in about half of the weeks. Customers are
those of the demo (Online Retail, UCI). The questions of each owner's analyst stand in `<name>.sql`. Their thresholds
are in braces, `{500}` where more qualifies and `{-500}` where less does, so that they can be relaxed by the tolerance.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from deploy.demo.build import HERE, install_demo
from proxy.cli.presets import Purpose, Unit, choose_preset

_QUESTION = re.compile(r"^-- ([a-z]+)\n(.*?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
_ANALYST = "[analysts.demo]" + (HERE / "keyhole.toml").read_text(encoding="utf-8").partition("[analysts.demo]")[2]


@dataclass(frozen=True, slots=True)
class Wish:
    """A question of an analyst: its form, and its SQL with thresholds in braces."""

    form: str
    sql: str


def read_questions(name: str) -> tuple[Wish, ...]:
    """Read a month of questions from the file of a world."""
    text = Path(__file__).with_name(f"{name}.sql").read_text(encoding="utf-8")
    return tuple(Wish(form, sql.strip()) for form, sql in _QUESTION.findall(text))


@dataclass(frozen=True, slots=True)
class World:
    """One owner's data and policy, and a month of an analyst's questions. `many_groups`: the owner takes what the
    preset offers where units are in many groups."""

    name: str
    fill: Callable[[Path], object]
    unit: Unit
    policy: str
    questions: tuple[Wish, ...]
    many_groups: bool = False

    @property
    def database(self) -> str:
        """The file's name."""
        return self.policy.split("duckdb:///")[1].split('"')[0]

    @property
    def text(self) -> str:
        """The policy: the preset's budgets and accuracy, the rest as the owner filled it in."""
        chosen = choose_preset(self.unit, Purpose.DASHBOARD)
        unit = "" if self.unit is Unit.ROW else f"epsilon_per_unit = {chosen.per_unit}\n"
        many = chosen.many_groups if self.many_groups else None
        delta = "" if many is None else f"delta = {many.delta:g}\n"
        per_query = chosen.per_query if many is None else many.per_query
        return (
            f'[accuracy]\ntolerance = "{chosen.tolerance}%"\n\n[budget]\n'
            f"epsilon_per_predicate = {chosen.per_predicate}\n{unit}"
            f"epsilon_per_query = {per_query}\n{delta}{self.policy}\n{_ANALYST}"
        )


def _fill(directory: Path, name: str, *statements: str) -> None:
    with duckdb.connect(str(directory / f"{name}.duckdb")) as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute("SET threads = 1")  # so that the seed gives the same rows anywhere
        for statement in statements:
            connection.execute(statement)


def fill_bookings(directory: Path) -> None:
    """120,000 hotel bookings of two years: countries by Zipf's law, more in summer, a third cancelled."""
    _fill(
        directory,
        "bookings",
        """CREATE TABLE bookings AS SELECT id,
            'C' || lpad(least(40, floor(1 / (0.02 + random())))::integer::varchar, 2, '0') AS country,
            DATE '2024-01-01' + floor(365 * (random() + sin(6.28 * random()) * 0.1 + 0.1))::integer AS day,
            ['city', 'resort'][1 + (random() < 0.35)::integer] AS hotel,
            ['web', 'agent', 'phone', 'group', 'company'][1 + floor(5 * random() * random())::integer] AS channel,
            1 + floor(13 * random() * random() * random())::integer AS nights,
            round(40 + 260 * random() * random(), 2) AS price, random() < 0.33 AS cancelled,
            1 + floor(3.9 * random())::integer AS guests FROM range(120000) AS t(id)""",
        """CREATE TABLE markets AS SELECT 'C' || lpad(n::varchar, 2, '0') AS country,
            ['north', 'south', 'east', 'west'][1 + n % 4] AS region FROM range(1, 41) AS t(n)""",
    )


def fill_households(directory: Path) -> None:
    """2,500 households over 53 weeks: two thirds of the weeks each, 100 stores of which most know one or two, 20 kinds
    of goods."""
    _fill(
        directory,
        "households",
        """CREATE TABLE homes AS SELECT id, floor(100 * random() * random())::integer AS store,
            0.35 + 0.6 * random() AS often, 0.5 + random() AS appetite FROM range(2500) AS t(id)""",
        """CREATE TABLE baskets AS SELECT h.id AS household, DATE '2024-01-01' + (7 * w + floor(7 * random()))::integer
            AS day, CASE WHEN random() < 0.85 THEN h.store ELSE (h.store * 7 + 3) % 100 END AS store,
            'kind' || lpad(floor(20 * random() * (0.5 + 0.5 * random()))::integer::varchar, 2, '0') AS kind,
            round(2 + 30 * h.appetite * random(), 2) AS amount, random() < 0.2 AS coupon
            FROM homes AS h, range(53) AS t(w), range(4) AS r(i) WHERE random() < h.often""",
        "DROP TABLE homes",
        "CREATE TABLE stores AS SELECT n AS store, 'town' || (n // 10) AS town FROM range(100) AS t(n)",
    )


_COUNTRIES = ", ".join(f'"C{number:02}"' for number in range(1, 41))
_BOOKINGS = """
[source]
url = "duckdb:///bookings.duckdb"

[tables.bookings]
privacy_unit = "row"
refresh = "static"

[tables.bookings.columns]
country = { key = { values = [COUNTRIES] } }
hotel = { key = { values = ["city", "resort"] } }
channel = { key = { values = ["web", "agent", "phone", "group", "company"] } }
guests = { key = { range = [1, 4] } }
month = { expression = "date_trunc('month', day)", key = { range = ["2024-01-01", "2025-02-01"], step = "1 month" } }
nights = { bounds = [1, 14], grid = 1 }
price = { bounds = [0, 300], grid = 1 }
cancelled = {}
day = {}

[tables.markets]
public = true
""".replace("COUNTRIES", _COUNTRIES)

_CUSTOMERS = """
[source]
url = "duckdb:///retail.duckdb"

[tables.sales]
privacy_unit = "customer_id"
refresh = "static"
max_groups_per_unit = 4
rows_per_unit = 200

[tables.sales.groupings]
country = { max_groups = 1, rows = 600, per_unit = { amount = [0, 10000] } }
month = { max_groups = 7, rows = 120, per_unit = { amount = [0, 2000] } }
hour = { max_groups = 5, rows = 250, per_unit = { amount = [0, 4000] } }

[tables.sales.columns]
country = { key = { values_from = "countries.name" } }
month.expression = "date_trunc('month', invoice_date)"
month.key = { range = ["2010-12-01", "2011-12-01"], step = "1 month" }
hour = { expression = "extract(hour from invoice_date)", key = { range = [6, 20] } }
amount = { bounds = [0, 200], grid = 0.1, per_unit = [0, 1500] }
quantity = {}
invoice_date = {}

[tables.countries]
public = true
"""

_KINDS = ", ".join(f'"kind{number:02}"' for number in range(20))
_HOUSEHOLDS = """
[source]
url = "duckdb:///households.duckdb"

[tables.baskets]
privacy_unit = "household"
refresh = "static"
max_groups_per_unit = 8
rows_per_unit = 40

[tables.baskets.groupings]
week = { max_groups = 53, rows = 4, per_unit = { amount = [0, 150] } }
month = { max_groups = 13, rows = 18, per_unit = { amount = [0, 500] } }
store = { max_groups = 2, rows = 180, per_unit = { amount = [0, 4000] } }
kind = { max_groups = 20, rows = 25, per_unit = { amount = [0, 600] } }

[tables.baskets.columns]
week = { expression = "date_trunc('week', day)", key = { range = ["2024-01-01", "2024-12-30"], step = "7 days" } }
month = { expression = "date_trunc('month', day)", key = { range = ["2024-01-01", "2025-01-01"], step = "1 month" } }
store = { key = { range = [0, 99] } }
kind = { key = { values = [KINDS] } }
amount = { bounds = [0, 50], grid = 0.1, per_unit = [0, 500] }
coupon = {}
day = {}

[tables.stores]
public = true
""".replace("KINDS", _KINDS)

WORLDS = (
    World("bookings", fill_bookings, Unit.ROW, _BOOKINGS, read_questions("bookings")),
    World("customers", install_demo, Unit.PERSON, _CUSTOMERS, read_questions("customers")),
    World("households", fill_households, Unit.PERSON, _HOUSEHOLDS, read_questions("households"), many_groups=True),
)
