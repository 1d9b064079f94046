"""What owners read out of the log: balances by family, analyst and unit, and questions a page at a time.

May refuse: nothing.
May import: `store` and below.
Read first: `report.py`.
"""
