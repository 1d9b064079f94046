"""A formula of comparisons read as functionals, atoms and integer literals.

Each has its tolerance, its guard and the part that declared bounds settle.

May refuse: KH206, KH208, KH211, KH220, KH304, KH900. May import: the other modules of `functionals` and below.
Read first: `read_atoms.py`.
"""
