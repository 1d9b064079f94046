"""Clients that apt or npm installs: `make test-clients` installs what it can, and what is missing skips its tests."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "installed" in item.path.parts:
            item.add_marker(pytest.mark.installed)
