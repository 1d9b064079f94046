"""The console: pages over REST's gate, pipeline and ledger.

Pages are rendered here (`templates/`, Jinja2) and helped by plain ES modules (`static/`); nothing is built, and nothing
comes from elsewhere. `page.py` renders and sets the headers, `guarded_routes.py` lets analysts and owners in,
`login.py` makes their sessions, which are sealed cookies (`session_cookie.py`) and no state. CONTRIBUTING.md has the
recipe for a page; `owner/` has the owner's.

May refuse: KH401, KH406, KH408.
May import: `rest`, `session` and below.
Read first: `app.py`.
"""
