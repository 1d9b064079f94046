"""What becomes of the client's own threads when its sessions end."""

import gc

from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator as Reading

from proxy.sources.spark.address import parse_address
from proxy.sources.spark.connection import SparkSession


def test_a_session_that_is_forgotten_ends_nothing_that_others_use() -> None:
    """Python may forget it while the same thread has the lock of what the client would end then."""
    shared = Reading._get_or_create_release_thread_pool()
    session = SparkSession(parse_address("sc://127.0.0.1:1"))
    session.abandon()
    session.itself = session  # type: ignore[attr-defined]  # forgotten when Python looks for circles, and not before
    del session
    gc.collect()
    assert Reading._release_thread_pool_instance is shared
    assert shared.submit(int).result() == 0
