"""The documentation site: the pages by reader, with search, for the address `/docs` of a running Keyhole.

`python -m docs.generator.site` builds it into `proxy/rest/site`; `make docs` installs the tool first.
Read first: `pages.py`.
"""
