"""Three owners whose analysts write as people do: a hospital's stays, a city's taxi trips, a shop's order lines."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from planner.catalog.model import Catalog
from planner.catalog.pins import Pins, pinned_table
from planner.policy.compile import SourceColumn, compile_catalog, key_domains
from planner.policy.file import Policy

FOLDER = Path(__file__).parents[1] / "spec" / "analysts"
NAMES = ("stays", "trips", "orders")
_TIME, _MONEY, _FLAG = "timestamp without time zone", "numeric(10,2)", "boolean"
_COLUMNS = {
    "stays": {
        "patient_id": "integer", "ward": "text", "sex": "text", "insurer": "text", "triage": "integer",
        "admitted": _TIME, "discharged": _TIME, "born": "date", "age": "integer", "cost": "integer",
        "beds_moved": "integer", "diagnosis": "text", "emergency": _FLAG, "readmitted": _FLAG,
    },
    "trips": {
        "zone": "integer", "payment": "text", "passengers": "integer", "pickup": _TIME, "dropoff": _TIME,
        "distance": _MONEY, "fare": _MONEY, "tip": _MONEY, "tolls": _MONEY, "rate_code": "integer", "vendor": "text",
    },
    "orders": {
        "customer_id": "integer", "region": "text", "category": "text", "channel": "text", "status": "text",
        "ordered_at": _TIME, "shipped_at": _TIME, "quantity": "integer", "price": _MONEY, "total": _MONEY,
        "discount": "numeric(4,2)", "coupon": "text", "sku": "text", "gift": _FLAG,
    },
}  # fmt: skip
_ZONES = (
    SourceColumn("zone_id", "integer", False),
    SourceColumn("name", "text", False),
    SourceColumn("borough", "text", False),
)


@cache
def analysts(name: str) -> Catalog:
    """The catalog of one of `NAMES`, everything pinned."""
    policy = Policy.parse((FOLDER / f"{name}.toml").read_text(), path=Path("keyhole.toml"), environment={})
    columns = _COLUMNS[name]
    schema: Mapping[str, tuple[SourceColumn, ...]] = {
        name: tuple(SourceColumn(column, kind, True) for column, kind in columns.items()),
        "zones": _ZONES,
    }
    boroughs = ("Bronx", "Brooklyn", "Queens")
    zones = tuple((number, f"Zone {number}", boroughs[number % 3]) for number in range(1, 61))
    pins = Pins(tables=(pinned_table("zones", _ZONES, zones),) if name == "trips" else ())
    domains = tuple(pinned for pinned, _ in key_domains(policy, schema=schema, pins=pins))
    return compile_catalog(
        policy, schema=schema, pins=Pins(tables=pins.tables, domains=domains), directory=Path("/data")
    )
