"""The mechanisms of MIDE, ProBE and MiM, and the sparse vector, on any formula.

It also has a published bound, for comparison only.

May refuse: `Denied`, `Unachievable`.
May import: `keyhole`, `ranking`, `streams`, `alarm`, `risk` and below.
Read first: `tslm.py`.
"""
