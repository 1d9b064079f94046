"""The mechanisms of MIDE, ProBE and MiM and the sparse vector technique, on any formula.

And a published bound, for comparison alone.

May refuse: `Denied`, `Unachievable`.
May import: `keyhole`, `ranking`, `streams`, `alarm`, `risk` and below.
Read first: `tslm.py`.
"""
