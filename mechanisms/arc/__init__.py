"""Arc looks: threshold tests of least Rényi divergence, as tables of integers.

May refuse: `Unachievable`.
May import: `keyhole`, `ranking`, `streams`, `alarm`, `risk` and below.
Read first: `look_table.py`.
"""
