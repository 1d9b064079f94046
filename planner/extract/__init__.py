"""Extraction of questions from statements, and their replacement by answered keys.

May refuse: KH100, KH101, KH103, KH104, KH106, KH107, KH110, KH201, KH202, KH204, KH207, KH208, KH215.
May import: `bind`, `lower`, `explain` and below.
Read first: `extract.py`.
"""
