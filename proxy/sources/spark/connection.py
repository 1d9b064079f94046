"""The sessions at a Spark server. Only this module imports Spark's client.

By default the client waits without limit and retries for minutes. Here every wait is limited: after the limit the
channel is closed, which ends all calls on it.
"""

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from proxy.sources.spark.address import SparkAddress
from proxy.sources.spark.spark_refusals import report_missing_client

if TYPE_CHECKING:
    import pyarrow as pa

_Result = TypeVar("_Result")
_LOGGERS = ("pyspark.sql.connect.logging", "SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Where the client writes plans, if a variable of the environment says so, and what a server says of errors, which
quotes values, whatever anybody says: to standard error."""
_AGAIN_S = 0.5  # between two requests to stop: the first may come before the statement has begun
GIVEN_UP_S = 5.0
"""After the time in which a statement was to be stopped, for the server's word that it has: a network's delay. A
channel on which none has come is closed; the server forgets the session when it finds nobody there."""
_RELEASING_S = 2.0  # for the server to hear that a session is over


def import_client() -> Any:
    """Return the client's module of sessions.

    Raises:
        KeyholeError: KH008 if the optional client library is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of versions of libraries that nothing here uses
            from pyspark.logger import PySparkLogger
            from pyspark.sql.connect import session
    except ImportError:
        raise report_missing_client() from None
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
    return session


class SparkSession:
    """A session at the server, with its own channel. The constructor sends nothing.

    Raises:
        KeyholeError: KH008 if the client library is not installed.
    """

    def __init__(self, address: SparkAddress) -> None:
        session = _make_session_class()
        builder = _make_builder(address)
        self._session = session(connection=builder, userId=address.user)
        self._channel = builder.opened
        self._client = self._session.client
        self._client.set_retry_policies([])
        self._closed = threading.Event()

    def configure(self, settings: Mapping[str, str]) -> None:
        """Change settings of the session at the server."""
        from pyspark.sql.connect import proto

        pairs = [proto.KeyValue(key=name, value=value) for name, value in settings.items()]
        self._client.config(proto.ConfigRequest.Operation(set=proto.ConfigRequest.Set(pairs=pairs)))

    def read_settings(self, names: Sequence[str]) -> Mapping[str, str | None]:
        """Return the server's values of these settings. The value is None for a setting that the server lacks."""
        from pyspark.sql.connect import proto

        wanted = proto.ConfigRequest.GetOption(keys=list(names))
        found = dict(self._client.config(proto.ConfigRequest.Operation(get_option=wanted)).pairs)
        return {name: found.get(name) for name in names}

    def use_database(self, *, catalog: str | None = None, database: str | None = None) -> None:
        """Set the catalog and database in which unqualified names are looked up."""
        if catalog is not None:
            self._session.catalog.setCurrentCatalog(catalog)
        if database is not None:
            self._session.catalog.setCurrentDatabase(database)

    def read(self, sql: str, *, on_schema: Callable[[], None] | None = None) -> Iterator["pa.Table"]:
        """Run one query, and yield its rows as they arrive, in tables of a few megabytes.

        The SQL must be a query. It is sent as a plan, since a command could do more than read.

        Parameters:
            on_schema: called when the server has sent the result's columns, usually before it has computed the rows. It
                is called after the last row at the latest.
        """
        import pyarrow as pa

        for part in self._client.to_table_as_iterator(self._query(sql)._plan.to_proto(self._client), {}):
            if isinstance(part, pa.Table):
                yield part
            elif on_schema is not None:
                on_schema()
                on_schema = None
        if on_schema is not None:
            on_schema()

    def read_rows(self, sql: str) -> list[dict[str, Any]]:
        """Run a query with a small result. Return each row as a dict by column name."""
        return [row for part in self.read(sql) for row in part.to_pylist()]

    def read_tuples(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query with a small result. Return each row as a tuple, so that two columns may share a name."""
        return [
            row for part in self.read(sql) for row in zip(*(column.to_pylist() for column in part.columns), strict=True)
        ]

    def read_fields(self, relation: str) -> Any:
        """Return the columns of a relation, in the client library's own types."""
        return self._query(f"SELECT * FROM {relation}").schema.fields

    def list_files(self, relation: str) -> list[str]:
        """Return the server's names of a relation's files, or an empty list if the server does not tell."""
        return sorted(self._query(f"SELECT * FROM {relation}").inputFiles())

    def _query(self, sql: str) -> Any:
        """Return a query as the client library's DataFrame, without sending anything to the server.

        The client's own `sql` would send the text for analysis.
        """
        from pyspark.sql.connect.dataframe import DataFrame
        from pyspark.sql.connect.plan import SQL

        return DataFrame(SQL(sql, [], {}, []), self._session)

    def add_view(self, name: str, rows: "pa.Table") -> None:
        """Create a temporary view with these rows in this session."""
        from pyspark.sql.pandas.types import from_arrow_schema

        schema = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
        self._session.createDataFrame(rows, schema).createOrReplaceTempView(name)

    @contextmanager
    def stop_after(self, *, after_ms: int) -> Iterator[None]:
        """Give the block's statements a time limit.

        If the server does not confirm that they have stopped, the channel is closed `GIVEN_UP_S` later, and the block
        raises.
        """
        tag = f"keyhole-{uuid4().hex}"
        ended = threading.Event()

        def stop() -> None:
            if ended.wait(after_ms / 1000):
                return
            threading.Thread(target=interrupt, name="keyhole-spark-interrupt", daemon=True).start()
            if not ended.wait(GIVEN_UP_S):
                self.abandon()

        def interrupt() -> None:
            while not ended.wait(_AGAIN_S if self._ask_to_stop(tag) else GIVEN_UP_S):
                pass

        threading.Thread(target=stop, name="keyhole-spark-limit", daemon=True).start()
        self._session.addTag(tag)
        try:
            yield
        finally:
            ended.set()
            self._session.removeTag(tag)

    def _ask_to_stop(self, tag: str) -> bool:
        try:
            self._session.interruptTag(tag)
        except Exception:
            return False
        return True

    @contextmanager
    def close_after(self, seconds: float) -> Iterator[None]:
        """Close the channel unless the block ends within `seconds`."""
        timer = threading.Timer(seconds, self.abandon)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def abandon(self) -> None:
        """Close the channel, which ends all waits on it."""
        self._closed.set()
        self._channel.close()

    def close(self) -> None:
        """End the session and its running statements, without waiting."""
        threading.Thread(target=self._release, name="keyhole-spark-release", daemon=True).start()

    def _release(self) -> None:
        if self._closed.is_set():
            return
        with suppress(Exception), self.close_after(_RELEASING_S):
            self._client.release_session()
        self.abandon()


def explain_failure(error: Exception) -> str:
    """Return a server's or network's error as text for the owner, without the headers of a request."""
    cause: BaseException | None = error
    while cause is not None:
        details: Callable[[], object] | None = getattr(cause, "details", None)
        if callable(details):
            return " ".join(str(details()).split())
        cause = cause.__cause__ or cause.__context__
    return " ".join(str(error).split())


@cache
def _make_session_class() -> Any:
    """Return the client's session class without its destructor.

    The destructor ends a thread pool that all sessions of the process share, and waits for it. Python may run it in any
    thread, also in one that holds the pool's lock, which would then deadlock. Code here closes each channel explicitly.
    """

    class Session(import_client().SparkSession):  # type: ignore[misc]
        def __del__(self) -> None:
            """Do nothing."""

    return Session


def _make_builder(address: SparkAddress) -> Any:
    """Return a builder that opens the channel for the client, and keeps it as `opened`."""
    import grpc
    from pyspark.sql.connect.client.core import DefaultChannelBuilder

    class Builder(DefaultChannelBuilder):  # type: ignore[misc]
        opened: Any = None

        def toChannel(self) -> grpc.Channel:  # noqa: N802 (the client's name)
            credentials = _make_credentials(address)
            if credentials is None:
                self.opened = self._insecure_channel(self.endpoint)
            else:
                self.opened = self._secure_channel(self.endpoint, credentials)
            return self.opened

    builder = Builder(f"sc://{address.endpoint}")
    for name, value in address.headers:
        builder.set(name, value)
    return builder


def _make_credentials(address: SparkAddress) -> Any:
    """Return gRPC's credentials for TLS and the token. Return None for an unencrypted channel."""
    import grpc

    known = None
    if address.use_ssl:
        known = grpc.ssl_channel_credentials(root_certificates=address.ca_certificates)
    elif address.token is not None:
        known = grpc.local_channel_credentials()  # which refuse to leave this machine
    if address.token is None:
        return known
    return grpc.composite_channel_credentials(known, grpc.access_token_call_credentials(address.token))
