"""Standing questions: a formula watched by alarms or streams.

May refuse: `Unachievable`.
May import: `published`, `arc` and below.
Read first: `standing_protocol.py`.
"""
