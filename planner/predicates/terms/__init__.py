"""Functions of one column whose comparisons with constants are conditions on the column itself, one file for each kind.

May refuse with KH107, KH201, KH205 and KH212. Other folders call `operand`.

Read first: `operand.py`.
"""
