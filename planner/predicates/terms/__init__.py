"""Functions of one column whose comparisons with constants are conditions on the column itself: one file for each kind.

May refuse with KH107, KH201, KH205 and KH212; `operand` is what the files beside this folder call.
Read first: `operand.py`.
"""
