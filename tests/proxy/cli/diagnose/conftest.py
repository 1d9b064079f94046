"""The command in this process, as for all others."""

from tests.proxy.cli.conftest import checked, policy, run

__all__ = ["checked", "policy", "run"]
