"""Counters, gauges, durations by stage and the log, none of them with data.

May refuse: nothing.
May import: nothing else of proxy.
Read first: `telemetry.py`.
"""
