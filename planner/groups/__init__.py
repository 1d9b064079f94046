"""Groups computed from columns: the finitely many values of an expression, from public facts alone.

What the policy declares (bounds, types, calendars) and what the statement says itself (literals, the range that WHERE
gives) make the groups, never a row. Refuses with KH202 what has too many values, or values that are not computed. Read
`computed_keys.py` first.
"""
