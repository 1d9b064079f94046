"""Metrics and the log, without data.

May refuse: nothing.
May import: nothing else of proxy.
Read first: `telemetry.py`.
"""
