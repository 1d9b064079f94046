"""The `keyhole` script."""

from typing import NoReturn

from proxy.concurrency.interpreter import collect_garbage_seldom, disable_pydantic_plugins, end_process


def run() -> NoReturn:
    """Run the command. It is imported here, so that child processes that import this script do not load it."""
    collect_garbage_seldom()
    disable_pydantic_plugins()
    from proxy.cli.main import main

    try:
        main()
    except SystemExit as ended:
        end_process(ended)
    end_process(SystemExit())
