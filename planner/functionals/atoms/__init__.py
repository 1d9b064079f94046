"""Formulas of comparisons, read as functionals, atoms and integer literals.

Each comparison gets its tolerance and its guard. Declared bounds may settle some of them.

May refuse: KH206, KH208, KH211, KH220, KH304, KH900. May import: the other modules of `functionals` and below.

Read first: `read_atoms.py`.
"""
