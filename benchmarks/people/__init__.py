"""What ordinary people get within a preset's budgets: a month of 40 questions about bookings, customers or households.

May import: the whole product.
Read first: `worlds.py`.
"""
