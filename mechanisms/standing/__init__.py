"""Standing questions: a formula over thresholds, watched through a window of looks by alarms or streams.

May refuse: `Unachievable`.
May import: `published` and below.
Read first: `standing_protocol.py`.
"""
