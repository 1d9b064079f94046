"""An auditor that tries to prove mechanisms not private, and measures error rates.

May refuse: `Unachievable`.
May import: `registry` and below.
Read first: `auditor.py`.
"""
