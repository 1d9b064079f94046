"""The differences of each engine, one value for each: a `Dialect` whose fields are the differences.

Everything else in `lower` is SQL that all engines read alike, and asks the value instead of comparing names. Another
engine is another file here. A dialect knows columns and texts of expressions, and may import `values` and `catalog`.
"""
