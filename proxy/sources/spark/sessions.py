"""The opening of Spark sessions in which SQL has the meaning that Keyhole assumes.

Guarantee: each returned session belongs to the policy's engine. Every required setting was set and read back. Test
statements without a table returned the results that these settings promise. The session is new, and not shared.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from planner.errors import KeyholeError
from proxy.sources.spark.address import SparkAddress
from proxy.sources.spark.connection import SparkSession, explain_failure
from proxy.sources.spark.spark_refusals import (
    refuse_ignored_setting,
    refuse_other_engine,
    refuse_unkept_setting,
    report_missing_namespace,
    report_unreachable_spark,
)

_Result = TypeVar("_Result")
_SPARK_VERSION = re.compile(r"(\d+)\.\d+\.\d+\S* [0-9a-f]{7,40}")  # and the commit that it was built from
_SAIL_VERSION = re.compile(r"0\.\d+\.\d+\S*")
_OLDEST_SPARK = 4  # those before it write decimals and read names otherwise unless they are told
_MEANINGS: Mapping[str, tuple[str, str]] = {
    "decimals as text": ("CAST(CAST('0.0000001' AS decimal(38,7)) AS string)", "0.0000001"),
    "decimals of a product": ("typeof(CAST(1 AS decimal(38,10)) * CAST(1 AS decimal(38,10)))", "decimal(38,20)"),
    "timestamps without a zone": ("typeof(timestamp '2020-01-01 00:00:00')", "timestamp_ntz"),
    "the session's zone": ("CAST(CAST('2020-06-01T12:00:00Z' AS timestamp_ltz) AS string)", "2020-06-01 12:00:00"),
    "names in capitals": ("(SELECT A FROM (SELECT 'a' AS a, 'A' AS A))", "A"),
    "a cast that fails": ("CAST(try_cast('x' AS int) IS NULL AS string)", "true"),
    "weekdays": ("CAST(dayofweek(date '2026-11-22') AS string)", "1"),
}
"""What settings decide, as expressions of constants, and the text that each must give: Sail reads back whatever it was
told, known to it or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkServer:
    """A Spark server with its expected engine (None: any), and the catalog and database for unqualified names.

    `settings` were chosen by the owner. `required` are settings on which the meaning of Keyhole's SQL depends.
    """

    address: SparkAddress
    engine: str | None
    catalog: str | None
    database: str | None
    settings: Mapping[str, str]
    required: Mapping[str, str]


def open_session(place: SparkServer, *, seconds: float) -> SparkSession:
    """Open and test a new session within `seconds`.

    Raises:
        KeyholeError: KH008, with the cause, for the owner.
    """
    session = SparkSession(place.address)
    try:
        with session.close_after(seconds):
            _explain_failures(lambda: session.configure({**place.settings, **place.required}))
            check_session(session, engine=place.engine, required=place.required)
            _use(session, place)
    except BaseException:
        session.close()
        raise
    return session


def check_session(session: SparkSession, *, engine: str | None, required: Mapping[str, str]) -> None:
    """Check that the session's engine and settings give SQL the meaning that Keyhole assumes. Raise KH008 if not."""
    kept = _explain_failures(lambda: session.read_settings(tuple(required)))
    told = _try_constants(session)
    found = find_engine(session) if isinstance(told, KeyholeError) else _name_engine(told[0])
    if engine is not None and found != engine:
        raise refuse_other_engine(engine, found)
    for name, wanted in required.items():
        value = kept[name]
        if value is None or value.lower() != wanted.lower():
            raise refuse_unkept_setting(name, wanted=wanted, found="unknown there" if value is None else value)
    if isinstance(told, KeyholeError):
        raise told
    for (name, (_, wanted)), given in zip(_MEANINGS.items(), told[1:], strict=True):
        if given != wanted:
            raise refuse_ignored_setting(name, wanted=wanted, found=str(given))


def find_engine(session: SparkSession) -> str:
    """Return the name of the session's engine: `spark`, `sail`, or the server's own name.

    Raise KH008 if the source does not answer.
    """
    ((version,),) = (
        row.values() for row in _explain_failures(lambda: session.read_rows("SELECT version() AS version"))
    )
    return _name_engine(version)


def _name_engine(version: object) -> str:
    if (spark := _SPARK_VERSION.fullmatch(str(version))) is not None:
        return "spark" if int(spark[1]) >= _OLDEST_SPARK else f"Apache Spark {version}"
    return "sail" if _SAIL_VERSION.fullmatch(str(version)) else str(version)[:60]


def _try_constants(session: SparkSession) -> tuple[object, ...] | KeyholeError:
    """Return the server's version and the results of the test expressions, in one request, or the refusal."""
    tried = ("version()", *(sql for sql, _ in _MEANINGS.values()))
    columns = ", ".join(f"{sql} AS m{i}" for i, sql in enumerate(tried))
    try:
        # from a relation of constants: Spark computes these where it plans, and sends no worker anything
        (row,) = session.read_tuples(f"SELECT {columns} FROM VALUES (1) AS one(x)")
    except Exception as error:
        return refuse_ignored_setting("its SQL", wanted="values", found=explain_failure(error))
    return row


def _use(session: SparkSession, place: SparkServer) -> None:
    for what, name in (("catalog", place.catalog), ("database", place.database)):
        if name is None:
            continue
        try:
            session.use_database(**{what: name})
        except Exception:
            failure = report_missing_namespace(name, what=what)
        else:
            continue
        raise failure


def _explain_failures(work: Callable[[], _Result]) -> _Result:
    """Return the result of `work`. Raise KH008, with the text of the server or the network."""
    try:
        return work()
    except KeyholeError:
        raise
    except Exception as error:
        failure = report_unreachable_spark(detail=explain_failure(error))
    raise failure
