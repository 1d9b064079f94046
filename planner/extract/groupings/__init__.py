"""Groups of groups: a grouped subquery that another GROUP BY puts together, as one question.

It changes text alone, and refuses nothing but what it can show in another form (KH110). It may import the parser, the
scope, and what `push_down_thresholds` reads of a subquery.
"""
