"""Units whose totals a clip may cut, told apart from all others, whose rows are summed without them.

Keeping them apart changes no integer. May import the catalog, questions and rows, paths, steps of `planner.lower`.
Read first: `list_heavy.py`; `reach_heavy.py` has the relation that reads the list.
"""
