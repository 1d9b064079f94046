"""What ordinary people get: a month of 40 questions each about bookings, customers and households, within a preset's
budgets.

May import: the whole product.
Read first: `worlds.py`.
"""
