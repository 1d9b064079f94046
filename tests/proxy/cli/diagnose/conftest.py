"""The command in this process, as for all others."""

from tests.proxy.cli.conftest import checked, checked_once, policy, run

__all__ = ["checked", "checked_once", "policy", "run"]
