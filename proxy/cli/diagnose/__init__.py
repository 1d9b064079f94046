"""`keyhole diagnose`: how well scores predict outcomes, released with noise and charged.

`command.py` is the command, and `report.py` joins the sections. `curves.py` and `residuals.py` describe the release for
one group.
"""
