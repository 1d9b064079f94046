"""The mechanisms of MIDE, ProBE and MiM and the sparse vector technique, on any formula, to compare with and to
choose by name; and a published bound, to compare with alone.

May refuse: `Denied`, `Unachievable`.
May import: `keyhole`, `ranking`, `streams`, `alarm`, `risk` and below.
Read first: `tslm.py`.
"""
