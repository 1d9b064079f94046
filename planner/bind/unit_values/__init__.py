"""Values of one unit's own rows as columns of a question: cohorts, first and last dates, counts of a unit's rows.

May refuse subqueries that are not one row for each whole unit (KH107, KH110). May import the rest of `planner.bind`'s
names and refusals, and what these import. Read `find_sources.py` first.
"""
