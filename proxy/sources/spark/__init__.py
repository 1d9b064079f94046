"""Spark as a source, over Spark Connect: Apache Spark, or Sail.

May refuse: KH006, KH008, KH501.
May import: `proxy.sources`'s modules but `open` and `shared`; the client library, late, in `connection.py` alone.
Read first: `spark_source.py`.
"""
