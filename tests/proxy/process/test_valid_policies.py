"""One function decides whether a policy is valid: `keyhole check`, `keyhole serve` and a reload accept and refuse the
same ones, with the same code, and none of them fails in another way."""

import json
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

import duckdb
import pytest
from pydantic import BaseModel

from planner.errors import KeyholeError
from planner.policy.file import Policy
from planner.policy.sections import PolicyDocument
from proxy.cli.check import check
from proxy.open_policy.service import Service
from proxy.process.addresses import open_sockets
from proxy.process.reload import PolicyInForce, RestartNeeded
from proxy.security.tls import Tls
from proxy.shadow.address import ShadowAddress
from proxy.shadow.binaries import find_own_programs
from proxy.shadow.embedded import EmbeddedShadow
from proxy.shadow.schema import build_schema, update_roles
from tests.effort import cases, rounds
from tests.worlds.policies import VERIFIER

BASE = f"""
[source]
url = "duckdb:///shop.duckdb"
hold = false

[budget]
epsilon_per_predicate = 4.0
epsilon_per_unit = 8.0
epsilon_per_query = 2.0

[server]
host = "127.0.0.1"
database = "shop"

[tables.visits]
comment = "visits"
privacy_unit = "patient"
max_groups_per_unit = 3
rows_per_unit = 20
refresh = "static"
append_only = true
arrived = "admitted"

[tables.visits.groupings."ward, day"]
max_groups = 3

[tables.visits.columns.patient]
[tables.visits.columns.ward]
comment = "the ward"
key = {{ values = ["A", "B", "C"] }}

[tables.visits.columns.disease]
key = {{ values_from = "diseases.name" }}

[tables.visits.columns.day]
key = {{ range = ["2026-01-01", "2026-01-28"], step = "1 day" }}

[tables.visits.columns.hour]
expression = "extract(hour from admitted)"
key = {{ range = [0, 23] }}

[tables.visits.columns.cost]
bounds = [0, 5000]
per_unit = [0, 8000]
grid = 0.01
bands = [1000, 2000]

[tables.diseases]
public = true
comment = "illnesses"

[monitors.busy]
sql = "SELECT ward, day FROM visits GROUP BY ward, day HAVING count(DISTINCT patient) > 10"
comment = "busy wards"
window = "day"
every = "1 hour"
from = "2026-01-02"
until = "2026-01-20"
tolerance = "25%"
mechanism = "alarm"
analysts = ["ada"]

[analysts.ada]
password = "{VERIFIER}"
"""

VIEW = """
[views.crowded]
sql = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > :least"
comment = "crowded wards"
parameters = { least = 40 }
"""
NUL = "\\u0000"
YEAR = 'expression = "extract(year from admitted)"'
LONG = "x" * 100_000
DIGITS = "9" * 5_000
SCALARS = ("[[]]", "-1", "inf", "nan", "1e400", "1e-400", "1e9999999999999999999", DIGITS, '""', '[""]', "{ a = {} }")

# the text of BASE that is replaced, what it is replaced with, and the code that all three give; None: all accept
CHANGES: tuple[tuple[str, str, str | None], ...] = (
    *((f'"{text}"', f'"a{NUL}b"', "KH002") for text in ("visits", "the ward", "illnesses", "busy wards", "127.0.0.1")),
    *((f'"{text}"', f'"a{NUL}b"', "KH002") for text in ("duckdb:///shop.duckdb", "diseases.name", "1 day", "shop")),
    ('["A", "B", "C"]', f'["A", "B{NUL}"]', "KH002"),
    ("[tables.visits.columns.ward]", f'[tables.visits.columns."wa{NUL}rd"]', "KH002"),
    ("[analysts.ada]", f'[analysts."a{NUL}"]', "KH002"),
    ('"the ward"', '"\\u0001\\u001b\\u007f \\u202e \\U0001f600 %s {} \' $$"', None),
    ('"the ward"', f'"{LONG}"', None),
    ('"busy wards"', '"\\ud800"', "KH001"),
    ('"busy wards"', "'''\nlines\n'''", None),
    ('["A", "B", "C"]', '["A", "", "\\u0001", "É"]', "KH007"),
    ('["A", "B", "C"]', "[]", "KH003"),
    ('["A", "B", "C"]', "[1, 2]", "KH003"),
    ("[0, 5000]", "[0, 1e400]", "KH004"),
    ("[0, 5000]", "[0, 1e-400]", "KH004"),
    ("[0, 5000]", "[0, 1e9999999999999999999]", "KH001"),
    ("[0, 5000]", f"[0, {DIGITS}]", "KH001"),
    ("[0, 5000]", "[nan, inf]", "KH002"),
    ("[1000, 2000]", "[]", "KH004"),
    ("[1000, 2000]", "[1e400]", "KH004"),
    ("epsilon_per_query = 2.0", "", "KH002"),
    ("epsilon_per_query = 2.0", "epsilon_per_query = 1000", None),
    ("epsilon_per_query = 2.0", "epsilon_per_query = inf", "KH002"),
    ("max_groups_per_unit = 3", "", "KH005"),
    ("rows_per_unit = 20", f"rows_per_unit = {2**63}", "KH002"),
    ("[budget]", "[bugdet]", "KH002"),
    ("[source]", "[sauce]", "KH002"),
    ("[tables.diseases]", "[tables.Diseases]", "KH002"),
    ("[tables.diseases]", "[tables.VISITS]", "KH002"),
    ("[tables.visits.columns.disease]", "[tables.visits.columns.ward]", "KH001"),
    ("[tables.visits.columns.disease]", "[tables.visits.columns.WARD]", "KH006"),
    *(
        ("[tables.diseases]", f'[tables.visits.columns."{name}"]\n{YEAR}\n[tables.diseases]', code)
        for name, code in (("ctid", "KH006"), ("", "KH006"), ("h" * 64, "KH006"), ("h" * 63, None), ("É", None))
    ),
    *((f'"{old}"', '"keyhole"', code) for old, code in (("shop", None), ("patient", "KH006"), ("ada", "KH002"))),
    *(('"shop"', f'"{name}"', "KH002") for name in ("template0", "template1", "Shop", "s" * 64, "")),
    *(
        ("[analysts.ada]", f"[analysts.{name}]", "KH002")
        for name in ("keyhole_analyst", "pg_monitor", "public", "postgres", "none", "ADA", '"a.b"', "a" * 64)
    ),
    *(('"127.0.0.1"', f'"{host}"', "KH002") for host in ("", "a b", "x" * 64, "x" * 300, "é", "a..b")),
    ("SELECT ward, day FROM visits", "SELECT ward, day FROM nowhere", "KH002"),
    ("SELECT ward, day FROM visits", "SELECT", "KH002"),
    ('"alarm"', "[]", "KH002"),
    ('"alarm"', "{ a = 1 }", "KH002"),
    ('window = "day"', 'window = "\\u0001"', None),
    ('"2026-01-20"', '"9999-12-31"', None),
    ('"2026-01-20"', '"0001-01-01"', "KH601"),
    ('"1 hour"', '"99999999999999999999999 weeks"', "KH002"),
    *((f"{key} = {value}", f"{key} = {new}", "") for key, value in (("append_only", "true"),) for new in SCALARS),
    *((f"{key} = {value}", f"{key} = {new}", "") for key, value in (("every", '"1 hour"'),) for new in SCALARS),
    *((f"{key} = {value}", f"{key} = {new}", "") for key, value in (("grid", "0.01"),) for new in SCALARS),
    *((f"{key} = {value}", f"{key} = {new}", "") for key, value in (("database", '"shop"'),) for new in SCALARS),
    ('comment = "illnesses"', f"seed = {'[' * 5000}{']' * 5000}", "KH001"),
)
OF_VIEWS: tuple[tuple[str, str, str | None], ...] = (
    ('"crowded wards"', f'"a{NUL}b"', "KH002"),
    ('"crowded wards"', '"wards, with more"', None),
    ("SELECT ward FROM visits", "SELECT nothing FROM visits", "KH002"),
    ("HAVING count(*) >", "HAVING ward >", "KH002"),
    ("{ least = 40 }", f'{{ least = "{LONG}" }}', "KH002"),
    ("[views.crowded]", "[views.visits]", "KH002"),
)


class Doors:
    """The three ways in which a policy comes into force, each with the code it refuses with, or None."""

    def __init__(self, path: Path, shadow: ShadowAddress) -> None:
        self._path = path
        self._pins = path.with_suffix(".pins.json")
        self._shadow = shadow
        check(path, confirm=False)
        self._pinned = self._pins.read_bytes()
        base = Policy.load(path)
        self._serving = Service.from_policy(base)
        build_schema(shadow, self._serving.catalog)
        self._now = PolicyInForce.make_for_shadow(base, self._serving.catalog.digest, None)

    def close(self) -> None:
        self._serving.close()

    def ask(self, text: str) -> dict[str, str | None]:
        """The code of each door. All of them load the file first, so what that refuses is not asked of each."""
        self._path.write_text(text, encoding="utf-8")
        if (code := _code(lambda: Policy.load(self._path))) is not None:
            return {"all": code}
        codes: dict[str, str | None] = {}
        for name, door in (("check", self._check), ("serve", self._serve), ("reload", self._reload)):
            self._pins.write_bytes(self._pinned)
            codes[name] = _code(door)
        return codes

    def _check(self) -> None:
        for table in check(self._path, confirm=False).broken:  # `keyhole check` tells of these, and ends with 1
            raise KeyholeError("KH006", str(table))

    def _serve(self) -> None:
        policy = Policy.load(self._path)
        Tls.open_from_policy(policy)
        find_own_programs(policy)
        with open_sockets(host=policy.server.host, port=0, rest_port=0), Service.from_policy(policy) as service:
            build_schema(self._shadow, service.catalog)

    def _reload(self) -> None:
        policy = Policy.load(self._path)
        try:
            self._now.check_no_restart(policy)
        except RestartNeeded:
            return self._serve()
        catalog = self._now.find_usable_catalog(policy, self._serving.source)
        if catalog is not None:
            return update_roles(self._shadow, catalog)
        with closing(self._serving.open_successor(policy)) as next_one:
            build_schema(self._shadow, next_one.catalog)
        return None


def _code(door: Callable[[], object]) -> str | None:
    try:
        door()
    except KeyholeError as error:
        return error.code
    except Exception as error:  # which `keyhole` would report as a fault of its own
        return f"{type(error).__name__}: {error}"
    return None


@dataclass(frozen=True)
class Spelled:
    """A value as TOML has it."""

    text: str


ODD = tuple(
    Spelled(one)
    for one in (
        *(
            f'"{text}"'
            for text in (f"a{NUL}b", "\\U0010ffff", "\\uffff'\\\"", " ", "", "x" * 300, "\\n", "../..", "1e9")
        ),
        *("0", "-1", "1", "true", str(2**63), "9" * 30, "nan", "-inf", "1e400", "0.1e-400", "2026-01-01", "07:32:00"),
        *("1979-05-27T00:32:00-07:00", "[]", "[[[]]]", '[1, "a"]', '["a", "a"]', "{}", "{ a = { a = {} } }"),
    )
)
Place = tuple[str, ...]


def keys(section: type[BaseModel], written: Any, place: Place = ()) -> Iterator[Place]:
    """Every key of a policy, also those that are not written; of named tables those of each that is."""
    for name, field in section.model_fields.items():
        key = (*place, field.alias or name)
        below = written.get(key[-1]) if isinstance(written, dict) else None
        yield key
        for kind in _sections(field.annotation):
            named = below if isinstance(below, dict) and get_origin(field.annotation) is dict else {}
            for one, part in named.items():
                yield from keys(kind, part, (*key, one))
            if get_origin(field.annotation) is not dict:
                yield from keys(kind, below, key)


def _sections(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _sections(part)


def with_value(document: dict[str, Any], place: Place, value: Spelled) -> str:
    """The policy with a value in the place of whatever is there."""
    changed = deepcopy(document)
    at = changed
    for part in place[:-1]:
        if not isinstance(at.get(part), dict):
            at[part] = {}
        at = at[part]
    at[place[-1]] = value
    return "".join(f"{key} = {_spell(one)}\n" for key, one in changed.items())


def _spell(value: Any) -> str:
    match value:
        case Spelled(text):
            return text
        case dict():
            return "{" + ", ".join(f"{json.dumps(key)} = {_spell(one)}" for key, one in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_spell, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def install(directory: Path, text: str) -> Path:
    with closing(duckdb.connect(str(directory / "shop.duckdb"))) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT (i % 97)::integer AS patient, 'A' AS ward, 'flu' AS disease, "
            "DATE '2026-01-01' + (i % 28)::integer AS day, (i % 500)::decimal(10,2) AS cost, "
            "TIMESTAMP '2026-01-01' AS admitted FROM range(100) t(i)"
        )
        connection.execute("CREATE TABLE diseases AS SELECT * FROM (VALUES ('flu'), ('cold')) t(name)")
    path = directory / "keyhole.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def own_shadow() -> Iterator[ShadowAddress]:
    """A shadow of this module alone: every policy has other analysts, whose roles are one set for a whole server."""
    with tempfile.TemporaryDirectory(prefix="keyhole-") as parent, EmbeddedShadow(Path(parent) / "shadow") as shadow:
        yield shadow.address


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory, own_shadow: ShadowAddress) -> Iterator[Doors]:
    with closing(Doors(install(tmp_path_factory.mktemp("valid"), BASE), own_shadow)) as opened:
        yield opened


def change(text: str, old: str, new: str) -> str:
    assert old in text, old
    changed = text.replace(old, new, 1)
    assert changed != text
    return changed


def test_a_policy_is_valid_or_refused_with_one_code_at_check_serve_and_reload(doors: Doors) -> None:
    wrong = {}
    # at quick one in five: what five neighbours in a row break is found
    for old, new, code in CHANGES[:: rounds(1, quick=5)]:
        codes = doors.ask(change(BASE, old, new))
        expected = next(iter(codes.values())) if code == "" else code
        if set(codes.values()) != {expected}:
            wrong[f"{old[:40]} -> {new[:60]}"] = codes
    assert not wrong, json.dumps(wrong, indent=1)


def test_odd_values_of_every_key_are_accepted_or_refused_with_one_code(doors: Doors) -> None:
    document = tomllib.loads(BASE)
    wrong = {}
    # one in twenty opens all three doors; all 8,092 were tried once; 60 find what one in 20 breaks with probability .95
    spread = cases(sorted(set(keys(PolicyDocument, document))), ODD, quick=60)
    for place, value in spread[: rounds(1_500, quick=60)]:
        if place[-1] == "host":
            continue  # which names there are the machine knows, and check is run on another
        codes = doors.ask(with_value(document, place, value))
        if len(set(codes.values())) > 1 or any(len(code or "") > len("KH001") for code in codes.values()):
            wrong[f"{'.'.join(place)} = {value.text[:60]}"] = codes
    assert not wrong, json.dumps(wrong, indent=1)


def test_stored_questions_are_valid_or_refused_with_one_code_too(tmp_path: Path, own_shadow: ShadowAddress) -> None:
    with closing(Doors(install(tmp_path, BASE + VIEW), own_shadow)) as doors:
        wrong = {}
        # at quick every other one: what two neighbours break is found
        for old, new, code in OF_VIEWS[:: rounds(1, quick=2)]:
            codes = doors.ask(BASE + change(VIEW, old, new))
            if set(codes.values()) != {code}:
                wrong[f"{old[:40]} -> {new[:60]}"] = codes
    assert not wrong, json.dumps(wrong, indent=1)
