"""What the pages take from the code: tables of the house, the reference of the policy, the picture of a question's way.

`python -m docs.generator` writes all of them; a test fails while a page and the code say different things.
Read first: `house.py`.
"""
