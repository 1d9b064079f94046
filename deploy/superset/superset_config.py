"""Superset's own settings for the show: everything in one folder, on loopback, for one person at one machine."""

import os
import secrets
from pathlib import Path

_HOME = Path(os.environ["SUPERSET_HOME"])
_KEY = _HOME / "secret_key"
if not _KEY.exists():
    _KEY.write_text(secrets.token_urlsafe(42), encoding="utf-8")

SECRET_KEY = _KEY.read_text(encoding="utf-8")
SQLALCHEMY_DATABASE_URI = f"sqlite:///{_HOME / 'superset.db'}"
# A script logs in here instead of a person: no page hands it a token first.
WTF_CSRF_ENABLED = False
# Plain HTTP on loopback. With a server that others reach, leave all three alone.
TALISMAN_ENABLED = False
SESSION_COOKIE_SECURE = False
# Superset keeps no answer of its own, so a refresh really asks Keyhole again.
DATA_CACHE_CONFIG = {"CACHE_TYPE": "NullCache"}
# The editor's own check wants a compiler for SQL (ecpg) and knows no keyhole settings: Keyhole's messages are clearer.
SQL_VALIDATORS_BY_ENGINE: dict[str, str] = {}
