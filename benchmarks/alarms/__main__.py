"""`python -m benchmarks.alarms`: what watching a value costs, and alarms beside others on real data, as a page.

Prices follow from formulas alone. The taxi trips are real where `KEYHOLE_GREEN_TAXI` names their file; noise follows
from the seed.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.alarms.measured import AboutAlarms, measure
from benchmarks.alarms.page import write_page
from benchmarks.alarms.replay import make_task
from mechanisms.alarm.calibration import calibrate_alarm
from mechanisms.alarm.run import draw_alarms, look_at_values
from mechanisms.noise.exact import make_system_noise

DIRECTORY = Path(__file__).parents[2] / "docs" / "results"
SEED = 2026
KEYS = 10_000


def time_look() -> float:
    """Processor time of one look at many keys, counts of all sizes below the cut."""
    calibration, noise = calibrate_alarm(make_task(looks=24, cut=1000, tolerance=100)), make_system_noise()
    states = draw_alarms(keys=KEYS, noise=noise)
    counts, looks = np.random.default_rng(1).integers(0, 900, KEYS), 3
    began = time.process_time()
    for look in range(1, looks + 1):
        states = look_at_values(calibration, states, counts + look, look=look, noise=noise)
    return (time.process_time() - began) / looks


def main() -> None:
    """Measure, write, say where."""
    from benchmarks.alarms.plots import draw_delays, draw_prices  # here: the numbers need no matplotlib

    parser = argparse.ArgumentParser(prog="benchmarks.alarms", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help="all noise follows from it, and the stand-in")
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="where alarms.md goes")
    given = parser.parse_args()
    taxis, shops = measure(seed=given.seed)
    about = AboutAlarms(seed=given.seed, seconds_a_look=time_look())
    given.directory.mkdir(parents=True, exist_ok=True)
    (given.directory / "alarms.md").write_text(write_page(taxis, shops, about), encoding="utf-8")
    draw_prices(given.directory / "alarms-prices.png")
    draw_delays((taxis.beside, *shops), given.directory / "alarms-delays.png")
    Console(stderr=True).print(f"wrote {given.directory / 'alarms.md'}")


if __name__ == "__main__":
    main()
