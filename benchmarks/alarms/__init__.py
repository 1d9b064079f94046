"""What watching a value all day costs: an accumulating alarm beside asking afresh and what others have published; and a
ladder of alarms on a year's taxi pick-ups, hour by hour.

Read first: `__main__.py`.
"""
