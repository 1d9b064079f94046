"""Relations that a source may keep from one question to the next: rows that count, and steps that are read by name.

Keeping them changes no integer. May import the catalog, questions and `planner.lower`'s rows and dialects.
Read first: `named_steps.py`; `rollup.py` answers from rows that count.
"""
