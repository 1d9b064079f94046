"""Which marks a test carries: found from its folder, its fixtures and what its module imports.

`make check` runs what carries none of `statistical`, `server`, `process`, `sized` and `long`, in the folders that open
no house: `accountant`, `mechanisms`, `planner` and `proxy/wire`. `make test` leaves out `long`, which
`make test-thorough` runs beside `sized`: those alone are named (`tests/long_tests.py`). `make test-oldest` runs
`interpreter`, the tests that stand on what differs between Pythons: sockets, threads, processes, files and TLS. It
leaves out `drawn`: a statement has the same text, and an engine the same integers, whatever Python asks.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

_TESTS = Path(__file__).parent
_STATISTICAL_FOLDERS = ("end_to_end/statistics", "mechanisms/audit", "mechanisms/published")
_PROCESS_FOLDERS = ("benchmarks", "project", "proxy/cli", "proxy/process")
_SERVER_FOLDERS = (
    "attacks",
    "clients",
    "end_to_end",
    "proxy/differential",
    "proxy/endpoint",
    "proxy/rest",
    "proxy/security/tls",
    "proxy/session",
    "proxy/shadow",
    "proxy/sources",
)
_DRAWN_FOLDERS = ("planner", "proxy/sources")
# Their tests' own modules need not import what Keyhole's sockets, threads and files stand on.
_INTERPRETER_FOLDERS = (
    "accountant/store",
    "end_to_end/concurrency",
    "end_to_end/faults",
    "proxy/concurrency",
    "proxy/endpoint",
    "proxy/process",
    "proxy/security/tls",
)
_SERVER_FIXTURES = frozenset({"new_database", "postgres_url", "running", "server", "shadow", "shadow_address"})
_SERVER_PARAMETERS = frozenset({"postgres", "postgresql"})
_PROCESS_NAMES = ("subprocess", "multiprocessing", "forked", "served")
_CONCURRENT_NAMES = ("asyncio", "signal", "socket", "ssl", "Thread", "ThreadPoolExecutor", "threading")


def list_marks(item: pytest.Function, *, also_sized: bool) -> list[str]:
    """Return the names of the marks that a collected test carries; of `sized`, which reads all files, if asked for."""
    found = {
        "statistical": _is_within(item.path, _STATISTICAL_FOLDERS),
        "server": _is_within(item.path, _SERVER_FOLDERS) or _needs_server(item),
        "process": _is_within(item.path, _PROCESS_FOLDERS) or _has_any(item.module, _PROCESS_NAMES),
        "sized": also_sized and _is_sized(item),
    }
    alike = not (_has_any(item.module, _CONCURRENT_NAMES) or _has_any(item.module, _PROCESS_NAMES))
    found["interpreter"] = not alike or _is_within(item.path, _INTERPRETER_FOLDERS)
    found["drawn"] = alike and _is_drawn(item) and _is_within(item.path, _DRAWN_FOLDERS)
    return [name for name, holds in found.items() if holds]


@cache
def _has_any(module: ModuleType, names: tuple[str, ...]) -> bool:
    return any(hasattr(module, name) for name in names)


@cache
def _is_within(path: Path, folders: tuple[str, ...]) -> bool:
    return _shorten_path(path).startswith(tuple(f"{one}/" for one in folders))


@cache
def _shorten_path(path: Path) -> str:
    return path.relative_to(_TESTS).as_posix()


def _needs_server(item: pytest.Function) -> bool:
    given = item.callspec.params.values() if hasattr(item, "callspec") else ()
    texts = {one for one in given if isinstance(one, str)}
    return not (_SERVER_FIXTURES.isdisjoint(item.fixturenames) and _SERVER_PARAMETERS.isdisjoint(texts))


def _is_sized(item: pytest.Function) -> bool:
    """Return whether `quick` shortens the test: hypothesis draws for it, or what it is made of takes sizes."""
    return _is_drawn(item) or item.originalname in _find_sized_names(item.path)


def _is_drawn(item: pytest.Function) -> bool:
    return getattr(item.obj, "is_hypothesis_test", False)


@cache
def _find_sized_names(path: Path) -> frozenset[str]:
    """Return what a module binds to values or functions that depend on a size from `tests.effort`."""
    statements = [
        ({*_bound(one)}, {node.id for node in ast.walk(one) if isinstance(node, ast.Name)} | _list_arguments(one))
        for one in ast.parse(path.read_text(encoding="utf-8")).body
    ]
    found = {"cases", "examples", "rounds"}
    while more := {name for names, used in statements if found & used for name in names} - found:
        found |= more
    return frozenset(found)


def _bound(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            yield from (node.id for one in targets for node in ast.walk(one) if isinstance(node, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def _list_arguments(statement: ast.stmt) -> set[str]:
    """Return the names of a function's arguments: a test's fixtures are among them."""
    return {node.arg for node in ast.walk(statement) if isinstance(node, ast.arg)}
