"""Reports from the log: balances by family, analyst and unit, and pages of questions.

May refuse: nothing.
May import: `store` and below.
Read first: `balance_report.py`.
"""
