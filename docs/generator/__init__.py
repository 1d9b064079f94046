"""What the pages take from the code: the tables of the house, the reference of the policy and the picture of a question's way.

`python -m docs.generator` writes both anew; a test fails while a page and the code say different things.
Read first: `house.py`.
"""
