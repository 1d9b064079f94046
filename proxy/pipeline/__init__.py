"""The pipeline of a question: plan, lookup, reservation, aggregates, decision, commit.

May refuse: KH106, KH108, KH301, KH302, KH305, KH306, KH307, KH308, KH309, KH318, KH319, KH501, KH502.
May import: `report` and below.
Read first: `stages.py`.
"""
