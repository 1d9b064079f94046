"""`keyhole diagnose`: how well scores predict outcomes, released with noise and charged.

`command.py` is the command, `report.py` puts its sections together, `curves.py` and `residuals.py` say what was
released of one group.
"""
