from importlib.util import find_spec

# where make test-spark has not installed the client of Spark Connect and Sail
collect_ignore_glob = [] if find_spec("pyspark") and find_spec("pysail") else ["test_spark*.py"]
