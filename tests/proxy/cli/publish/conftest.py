"""The command in this process, as for all others."""

from tests.proxy.cli.conftest import policy, run

__all__ = ["policy", "run"]
