"""Alternatives to a question that does not fit the budget: other settings, groups and aggregates, each really planned.

Each is really planned.

May refuse: KH301, KH302, KH305, KH306, KH309, KH502, as asking would.
May import: `proxy.pipeline` beside it, but not `answering` or `stages`.
Read first: `affordable.py`.
"""
