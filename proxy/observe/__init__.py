"""What the operator sees, without a datum: counters, gauges, durations by stage, and the log.

May refuse: nothing.
May import: nothing else of proxy.
Read first: `telemetry.py`.
"""
