"""What the published attacks find beside what Keyhole's key sets tell: shares of groups, places, secret bits.

May import: everything.
Read first: `disclosures.py`.
"""
