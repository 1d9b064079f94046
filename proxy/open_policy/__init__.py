"""An open policy: its catalog and pins, the source, the ledger, and the public data versions.

May refuse: KH002, KH006, KH007, KH009, KH014, KH016, KH401, KH411, KH502.
May import: `sources` and below.
Read first: `service.py`.
"""
