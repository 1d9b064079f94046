"""Diagnostics of scored tables beside the published ones: ROC curves, calibration, residuals, private bounds.

May import: everything.
Read first: `experiments.py`.
"""
