"""The `keyhole` script."""

from typing import NoReturn

from proxy.concurrency.interpreter import collect_seldom, end_process, load_no_plugins


def run() -> NoReturn:
    """Run the command, imported here: a process that it starts, and that imports the script again, needs none of it."""
    collect_seldom()
    load_no_plugins()
    from proxy.cli.main import main

    try:
        main()
    except SystemExit as ended:
        end_process(ended)
    end_process(SystemExit())
