"""Owners whose analysts write as people do: a hospital, a city's taxis, a shop, a library, sensors, a help desk, a
university, an insurer, a panel of households, a clinic with public tables beside its visits, a hospital of three
tables, hired bicycles, a clinic whose names have blanks, order lines, badge swipes, an energy supplier, a school, and
data sets of courses."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path

from planner.catalog.catalog import Catalog, Value
from planner.catalog.pins import Pins, pin_table
from planner.policy.compile import SourceColumn, compile_catalog, list_key_domains
from planner.policy.file import Policy

FOLDER = Path(__file__).parents[1] / "spec" / "analysts"
_TIME, _MONEY, _REAL = "timestamp without time zone", "numeric(10,2)", "double precision"
_PRIVATE = {
    "stays": {
        "stays": {
            "integer": "patient_id triage age cost beds_moved", "text": "ward sex insurer diagnosis",
            _TIME: "admitted discharged", "date": "born", "boolean": "emergency readmitted",
        },
    },
    "trips": {
        "trips": {
            "integer": "zone passengers rate_code", "text": "payment vendor", _TIME: "pickup dropoff",
            _MONEY: "distance fare tip tolls",
        },
    },
    "orders": {
        "orders": {
            "integer": "customer_id quantity", "text": "region category channel status coupon sku",
            _TIME: "ordered_at shipped_at", _MONEY: "price total", "numeric(4,2)": "discount", "boolean": "gift",
        },
    },
    "loans": {
        "loans": {
            "integer": "loan_id reader_id renewals reader_age", "text": "branch genre medium title language",
            _TIME: "borrowed_at returned_at", "numeric(6,2)": "fine", "boolean": "self_service", "date": "due_on",
        },
    },
    "readings": {
        "readings": {
            "text": "sensor site error_code firmware", _TIME: "read_at", _REAL: "temperature",
            "numeric(5,1)": "humidity", "real": "pressure", "smallint": "battery", "bigint": "co2", "boolean": "ok",
        },
    },
    "tickets": {
        "tickets": {
            "bigint": "ticket_id", "integer": "customer_id satisfaction agent_id minutes_spent replies",
            "text": "category priority status channel subject", _TIME: "opened_at first_reply_at closed_at",
            "boolean": "reopened",
        },
        "customers": {"integer": "customer_id", "text": "plan country", "date": "signed_up", "numeric(8,2)": "mrr"},
    },
    "courses": {
        "enrolments": {
            "integer": "StudentID attendance", "text": "Department Term degree course_code Mode", _REAL: "Final_Grade",
            "smallint": "credits", "boolean": "passed", "date": "enrolled_on dropped_on", "numeric(8,2)": "fee",
        },
    },
    "clinic": {
        "visits": {
            "integer": "id person age stay dose beds", "text": "ward drug", _TIME: "visited", "date": "born",
            "numeric(8,2)": "cost",
        },
    },
    "adult": {
        "adult": {
            "bigint": "age fnlwgt education_num capital_gain capital_loss hours_per_week",
            "text": "workclass education marital_status occupation relationship race sex native_country income",
        },
    },
    "flights": {
        "flights": {
            "bigint": "year month day hour minute dep_time sched_dep_time dep_delay arr_time sched_arr_time arr_delay"
            " flight air_time distance", "text": "carrier tailnum origin dest", _TIME: "time_hour",
        },
    },
    "titanic": {
        "titanic": {
            "integer": "passengerid survived pclass sibsp parch", "text": "name sex cabin embarked", _REAL: "age fare",
        },
    },
    "insurance": {
        "claims": {"integer": "holder_id amount days_open", "text": "region product", "date": "opened"},
        "old_claims": {"integer": "holder_id amount", "text": "region"},
        "calls": {"integer": "holder_id minutes", "text": "topic"},
    },
    "rides": {
        "rides": {
            "bigint": "ride_id", "integer": "start_station_id end_station_id distance_m battery birth_year",
            "text": "rider_type bike_type", _TIME: "started_at ended_at", "numeric(6,2)": "fare",
        },
    },
    "panel": {
        "households": {
            "integer": "household_id size children income", "text": "region tenure", "date": "joined",
        },
        "purchases": {
            "integer": "household_id quantity", "text": "store category brand", "numeric(8,2)": "spent",
            "date": "bought_on", "boolean": "coupon",
        },
    },
    "hospital": {
        "patients": {"integer": "patient_id", "text": "sex insurer", "date": "born"},
        "stays": {
            "bigint": "stay_id", "integer": "patient_id days", "text": "ward outcome", _TIME: "admitted",
            "boolean": "emergency",
        },
        "labs": {"integer": "lab_id patient_id", "text": "test", _REAL: "value", _TIME: "taken", "boolean": "abnormal"},
    },
    "retail": {
        "retail": {
            "text": "InvoiceNo StockCode Description Country", "integer": "Quantity CustomerID",
            "numeric(12,3)": "UnitPrice", _TIME: "InvoiceDate",
        },
    },
    "outpatients": {
        "appointments": {
            "bigint": "Appt_No Episode_No", "text": "Clinic_Code Status Specialty",
            _TIME: "Booked_At Start_Time Checked_In End_Time", "numeric(8,2)": "Fee_Charged",
            "smallint": "Pain_Score", "boolean": "Is_First_Visit",
        },
        "episodes": {"bigint": "Episode_No Patient_ID", "text": "Referral_Source Diagnosis_Group", "date": "Opened"},
        "patients": {"bigint": "Patient_ID", "date": "Birth_Date", "text": "Sex Postcode_Area Insurance_Type"},
    },
    "lines": {
        "order_lines": {
            "bigint": "order_id line_no", "text": "sku category channel warehouse country promo_code",
            "date": "ordered_on shipped_on", "integer": "qty", _MONEY: "unit_price", "smallint": "rating",
            _REAL: "discount tax_rate weight_kg", "boolean": "returned gift",
        },
    },
    "swipes": {
        "swipes": {
            "bigint": "swipe_id card_id", "text": "person_type school building door direction deny_reason term",
            _TIME: "swiped_at", "integer": "floor dwell_seconds printed_pages", "smallint": "battery",
            _REAL: "temperature", "boolean": "granted exam_week",
        },
    },
    "meters": {
        "readings": {
            "bigint": "meter_id", _TIME: "read_at", _REAL: "kwh peak_kwh", "text": "tariff status",
            "boolean": "estimated", "numeric(8,2)": "price", "real": "voltage",
        },
        "meters": {
            "bigint": "meter_id", "text": "region premises", "boolean": "solar", "date": "installed_on",
            "smallint": "occupants",
        },
    },
    "marks": {
        "marks": {
            "integer": "student_id school_year max_mark minutes_taken minutes_allowed", "text": "subject term grade",
            "numeric(5,1)": "mark", _TIME: "sat_at", "boolean": "absent", "smallint": "attempts",
        },
        "students": {
            "integer": "student_id year_group", "text": "house travels_by", "date": "born", "boolean": "bursary",
        },
    },
}  # fmt: skip
_AIRLINES = (
    "9E Endeavor Air Inc.", "AA American Airlines Inc.", "AS Alaska Airlines Inc.", "B6 JetBlue Airways",
    "DL Delta Air Lines Inc.", "EV ExpressJet Airlines Inc.", "F9 Frontier Airlines Inc.",
    "FL AirTran Airways Corporation", "HA Hawaiian Airlines Inc.", "MQ Envoy Air", "OO SkyWest Airlines Inc.",
    "UA United Air Lines Inc.", "US US Airways Inc.", "VX Virgin America", "WN Southwest Airlines Co.",
    "YV Mesa Airlines Inc.",
)  # fmt: skip
_PUBLIC: dict[str, dict[str, tuple[dict[str, str], Sequence[tuple[Value | None, ...]]]]] = {
    "trips": {
        "zones": (
            {"zone_id": "integer", "name": "text", "borough": "text"},
            [(number, f"Zone {number}", ("Bronx", "Brooklyn", "Queens")[number % 3]) for number in range(1, 61)],
        ),
    },
    "loans": {
        "branches": (
            {"branch": "text", "district": "text", "opened": "date", "floors": "integer"},
            [
                ("Central", "City", date(2001, 5, 1), 5), ("Mobile", "None", date(2010, 1, 1), 1),
                ("Northgate", "North", date(1978, 3, 1), 2), ("Riverside", "South", date(1990, 1, 1), 2),
                ("University", "City", date(2015, 9, 1), 3),
            ],
        ),
    },
    "tickets": {
        "agents": (
            {"agent_id": "integer", "agent_name": "text", "team": "text", "country": "text"},
            [
                (number, f"Agent {number}", ("Tier 1", "Tier 2", "Back office")[number % 3], ("ES", "PL")[number % 2])
                for number in range(1, 21)
            ],
        ),
    },
    "insurance": {
        "regions": (
            {"region": "text", "country": "text"},
            [("north", "NO"), ("west", "NO"), ("fjord", "NO"), ("skane", "SE"), ("gotland", "SE")],
        ),
    },
    "clinic": {
        "wards": (
            {
                "ward": "text", "region": "text", "capacity": "integer", "target": "numeric(5,2)", "budget": "integer",
                "opened": "date", "name": "text", "acute": "boolean",
            },
            [
                (
                    f"w{i}", ("north", "south", "east")[i % 3], 10 * i, i + Decimal("2.50"), 10_000 * i,
                    date(1990 + i, 1, 1), f"Ward {i}", i % 2 == 0,
                )
                for i in range(1, 9)
            ],
        ),
        "weather": (
            {"day": "date", "avg_temp": "numeric(4,1)", "rain": "boolean", "wind": _REAL},
            [
                (date(2024, 1, 1) + timedelta(i), i % 25 - Decimal("3.5"), i % 3 == 0, Decimal(i % 7) / 2)
                for i in range(60)
            ],
        ),
        "regions": (
            {"region": "text", "population": "integer", "area": "numeric(8,1)"},
            [
                ("north", 250_000, Decimal("1200.5")), ("south", 90_000, Decimal("800.0")),
                ("east", 120_000, Decimal("950.0")),
            ],
        ),
        "drugs": (
            {"drug": "text", "class": "text", "weight": "numeric(5,2)", "max_dose": "integer"},
            [(f"d{i}", ("opioid", "statin")[i % 2], Decimal(i) / 4, 10 * i) for i in range(1, 13)],
        ),
    },
    "rides": {
        "stations": (
            {"station_id": "integer", "name": "text", "district": "text", "capacity": "integer", "opened_on": "date"},
            [
                (
                    number, f"Dock {number}", ("Centre", "East", "Harbour", "North")[number % 4], 8 + number % 8 * 4,
                    date(2015 + number % 5, 1 + number % 12, 1),
                )
                for number in range(1, 41)
            ],
        ),
        "weather": (
            {"day": "date", "temperature": "numeric(4,1)", "rain_mm": "numeric(4,1)", "windy": "boolean"},
            [
                (
                    date(2024, 1, 1) + timedelta(day), day % 30 - Decimal("4.5"), Decimal(day % 7) / 2, day % 5 == 0,
                )
                for day in range(366)
            ],
        ),
    },
    "outpatients": {
        "clinics": (
            {"Clinic Code": "text", "Clinic Name": "text", "Region": "text", "Beds": "bigint"},
            [
                ("CAR", "Cardiology", "North", 40), ("DER", "Dermatology", "North", 12),
                ("EYE", "Eye Unit", "East", 8), ("GEN", "General", "East", 80), ("ONC", "Oncology", "West", 50),
                ("ORT", "Orthopaedics", "South", 60), ("PED", "Paediatrics", "South", 35),
                ("PSY", "Psychiatry", "West", 30),
            ],
        ),
    },
    "lines": {
        "products": (
            {"sku": "text", "category": "text", "brand": "text", "list_price": "numeric(10,2)"},
            [
                (f"{category[:2]}-{number:03}".upper(), category, ("Acme", "Bolt")[number % 2], Decimal(9 * number))
                for category in ("Books", "Garden", "Kitchen", "Office", "Pets", "Toys")
                for number in range(1, 13)
            ],
        ),
        "warehouses": (
            {"code": "text", "city": "text", "country": "text", "capacity": "integer"},
            [
                ("AMS", "Amsterdam", "NL", 12000), ("BCN", "Barcelona", "ES", 5000), ("LYO", "Lyon", "FR", 9000),
                ("POZ", "Poznan", "PL", 7000),
            ],
        ),
    },
    "flights": {
        "airlines": ({"carrier": "text", "name": "text"}, [tuple(one.split(" ", 1)) for one in _AIRLINES]),
    },
}  # fmt: skip
NAMES = tuple(_PRIVATE)


def _make_columns(kinds: Mapping[str, str]) -> tuple[SourceColumn, ...]:
    return tuple(
        SourceColumn(column.replace("_", " ") if column[0].isupper() else column, kind, True)
        for kind, columns in kinds.items()
        for column in columns.split()
    )


@cache
def analysts(name: str) -> Catalog:
    """The catalog of one of `NAMES`, everything pinned."""
    policy = Policy.parse((FOLDER / f"{name}.toml").read_text(), path=Path("keyhole.toml"), environment={})
    public = {
        table: (tuple(SourceColumn(column, kind, False) for column, kind in kinds.items()), rows)
        for table, (kinds, rows) in _PUBLIC.get(name, {}).items()
    }
    schema: Mapping[str, tuple[SourceColumn, ...]] = {
        **{table: _make_columns(kinds) for table, kinds in _PRIVATE[name].items()},
        **{table: columns for table, (columns, _) in public.items()},
    }
    pins = Pins(tables=tuple(pin_table(table, columns, tuple(rows)) for table, (columns, rows) in public.items()))
    domains = tuple(pinned for pinned, _ in list_key_domains(policy, schema=schema, pins=pins))
    return compile_catalog(
        policy, schema=schema, pins=Pins(tables=pins.tables, domains=domains), directory=Path("/data")
    )
