"""Balances, the log, formulas and refusals as tables, trees and heat maps.

May refuse: KH900.
May import: `open_policy` and below.
Read first: `budget.py`.
"""
