"""A measurement of how fast a browser shows the owner's pages: `python -m deploy.console.stopwatch [TIMES]`.

First paint of each page, and when a budget map of 100 by 100 groups is drawn, in milliseconds from the click: the
middle of so many visits, and the slowest. The promise is 300 for the one and 1,000 for the other, on an idle machine.
"""

import statistics
import sys

from accountant.charges import NANO, Cells, Charge, Family
from deploy.console.pictures import MORE, log_owner_in, serve_demo
from deploy.superset.browser import Browser, open_browser
from proxy.console.page import TABS
from proxy.open_policy.accounts import find_limits
from proxy.open_policy.service import OWNER, Service

SIDE = 100  # groups, down and across
TIMES = 9
_PAINTED = "const [paint] = performance.getEntriesByName('first-contentful-paint'); return paint?.startTime ?? 0"
_DRAWN = "const marks = performance.getEntriesByName('map-drawn'); return marks.length ? marks[0].startTime : 0"


def charge_square(service: Service) -> None:
    """Reserve a question about very many groups of an extra table, so that the heat map is large."""
    columns = tuple((name, tuple(f"{name}{place:03}" for place in range(SIDE))) for name in ("column", "row"))
    names = tuple(name for name, _ in columns)
    family = Family(table="square", unit="row", columns=names, filter="", version="v1", immutable=frozenset())
    asked = Charge("0" * 64, "demo", family, Cells(columns), NANO, 0, shared=True, path_continuation=None)
    service.ledger.reserve(asked, find_limits(service.catalog, OWNER))


def measure_page(window: Browser, address: str, script: str, *, times: int) -> list[float]:
    """Visit a page `times` times, and return the results of its script, in ascending order."""
    found = []
    for _ in range(times):
        window.visit_page(address)
        window.wait_for_script(script)
        found.append(float(window.run(script)))
    return sorted(found)


def print_page_times(times: int) -> None:
    """Measure every page of the console, and print a line for each."""
    with serve_demo(MORE) as (service, site), open_browser() as window:
        charge_square(service)
        log_owner_in(window, site)
        for tab in TABS["owner"]:
            print_line(f"{tab.title}: first paint", measure_page(window, site + tab.href, _PAINTED, times=times))
        square = f"{site}/console/owner/budget?table=square"
        print_line(f"{SIDE * SIDE:,} groups: drawn", measure_page(window, square, _DRAWN, times=times))


def print_line(what: str, found: list[float]) -> None:
    """Print the median and the extremes of the results under a label."""
    print(f"{what:32} {statistics.median(found):6.0f} ms, {found[-1]:6.0f} at most")  # noqa: T201


if __name__ == "__main__":
    print_page_times(int(sys.argv[1]) if len(sys.argv) > 1 else TIMES)
