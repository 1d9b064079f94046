"""A real Sail and a real Spark, started for tests, and a gate before it that may close, lie or let nobody in."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest

from proxy.sources.open import Source, SparkLogin, open_source

_SERVICE = "/spark.connect.SparkConnectService/"
_STREAMED = ("ExecutePlan", "ReattachExecute")
_STARTED_S = 60.0
_SPARK_STARTED_S = 300.0  # a JVM or three, on a busy machine
CLUSTER = "local-cluster[2,1,1024]"  # a process for each of two workers, of one core and a gigabyte


@dataclass
class Sail:
    """A server on loopback, which may be killed and started again on its port."""

    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def url(self) -> str:
        return f"sc://127.0.0.1:{self.port}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def start_again(self) -> None:
        self.process = _start(self.port)


@contextmanager
def sail_running() -> Iterator[Sail]:
    port = _free_port()
    sail = Sail(port, _start(port))
    try:
        yield sail
    finally:
        sail.kill()


@dataclass(frozen=True)
class Spark:
    """An Apache Spark that serves Spark Connect on loopback."""

    url: str


@contextmanager
def spark_running(*, master: str, folder: Path) -> Iterator[Spark]:
    """A Spark of the package that KEYHOLE_SPARK_HOME names, with its tables in the folder; the test is skipped where
    there is none."""
    home = os.environ.get("KEYHOLE_SPARK_HOME")
    if not home:
        pytest.skip("KEYHOLE_SPARK_HOME names no Apache Spark")
    if shutil.which("java") is None:
        pytest.skip("Apache Spark needs Java 17 or later")
    port = _free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "tables"),
        "spark.ui.enabled": "false",
    }
    command = [str(Path(home, "bin", "spark-submit")), "--master", master]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    process = subprocess.Popen(
        [*command, "spark-internal"],
        cwd=folder,
        env={**os.environ, "SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait_for(port, process, within_s=_SPARK_STARTED_S)
        yield Spark(f"sc://127.0.0.1:{port}")
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # its workers, too
        process.wait()


def open_server(url: str, *, directory: Path) -> Source:
    """The engine there as a source, whichever it is."""
    return open_source(url, directory=directory, spark=SparkLogin())


def _start(port: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "pysail", "spark", "server", "--ip", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _wait_for(port, process, within_s=_STARTED_S)
    return process


def _wait_for(port: int, process: "subprocess.Popen[bytes]", *, within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if not probe.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.05)
    process.kill()
    raise TimeoutError("the server did not start")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@dataclass
class Gate(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Hands calls on as they are, bytes for bytes.

    `token`: whoever does not bring it is not let in. `lies`: settings that are said to have another value. `closed`:
    calls are taken and never answered. `seen`: the names of the calls, `brought`: the
    tokens that came with them.
    """

    behind: str
    token: str | None = None
    lies: dict[str, str] = field(default_factory=dict)
    closed: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    seen: list[str] = field(default_factory=list)
    brought: list[str | None] = field(default_factory=list)
    url: str = ""

    def service(self, handler_call_details: Any) -> Any:
        method = str(handler_call_details.method)
        name = method.removeprefix(_SERVICE)
        self.seen.append(name)
        brought = dict(handler_call_details.invocation_metadata).get("authorization")
        self.brought.append(brought)
        if self.token is not None and brought != f"Bearer {self.token}":
            return grpc.unary_unary_rpc_method_handler(_refuse)
        if name in _STREAMED:
            return grpc.unary_stream_rpc_method_handler(lambda asked, _: self._stream(method, asked))
        if name == "AddArtifacts":
            return grpc.stream_unary_rpc_method_handler(lambda asked, _: self._channel.stream_unary(method)(asked))
        return grpc.unary_unary_rpc_method_handler(lambda asked, _: self._call(method, name, asked))

    @property
    def _channel(self) -> Any:
        return grpc.insecure_channel(self.behind)

    def _wait(self) -> None:
        while self.closed.is_set() and not self.ended.wait(0.05):
            pass

    def _call(self, method: str, name: str, asked: bytes) -> bytes:
        self._wait()
        with self._channel as channel:
            answer: bytes = channel.unary_unary(method)(asked)
        if name != "Config" or not self.lies:
            return answer
        from pyspark.sql.connect import proto

        told = proto.ConfigResponse.FromString(answer)
        for pair in told.pairs:
            if pair.key in self.lies:
                pair.value = self.lies[pair.key]
        changed: bytes = told.SerializeToString()
        return changed

    def _stream(self, method: str, asked: bytes) -> Iterator[bytes]:
        self._wait()
        with self._channel as channel:
            for answer in channel.unary_stream(method)(asked):
                self._wait()
                yield answer


def _refuse(_: bytes, context: grpc.ServicerContext) -> bytes:
    context.abort(grpc.StatusCode.UNAUTHENTICATED, "no such token")
    return b""


@contextmanager
def gate_before(sail: Sail, *, credentials: Any = None, token: str | None = None) -> Iterator[Gate]:
    """A gate, in TLS where there are credentials."""
    gate = Gate(behind=f"127.0.0.1:{sail.port}", token=token)
    server = grpc.server(ThreadPoolExecutor(16), handlers=(gate,))
    if credentials is None:
        port = server.add_secure_port("127.0.0.1:0", grpc.local_server_credentials())
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    gate.url = f"sc://127.0.0.1:{port}"
    server.start()
    try:
        yield gate
    finally:
        gate.ended.set()
        server.stop(None)
