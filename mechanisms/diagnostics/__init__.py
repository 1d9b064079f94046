"""Private diagnostics of a model's scores: one noisy histogram, and the published methods by name.

May refuse: nothing.
May import: `published`, `arc` and below.
Read first: `score_histogram.py`.
"""
