"""How well a model's scores foretell outcomes, privately: one noisy histogram, and the published methods by name.

May refuse: nothing.
May import: `published` and below.
Read first: `score_histogram.py`.
"""
