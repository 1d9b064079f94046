"""An auditor that tries to refute privacy, and measures error rates.

May refuse: `Unachievable`.
May import: `registry` and below.
Read first: `auditor.py`.
"""
