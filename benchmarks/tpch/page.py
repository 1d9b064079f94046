"""TPC-H in docs/benchmarks.md: `python -m benchmarks.tpch.page` prints its ratios and draws its image.

The numbers lie in docs/results/tpch.csv, which `python -m benchmarks.tpch --csv` writes.
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from statistics import geometric_mean
from typing import Any, get_type_hints

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, NullFormatter
from rich.console import Console
from rich.table import Table

from benchmarks.experiments.plots import STYLE
from benchmarks.tpch.asking import PUBLIC, Asked
from benchmarks.tpch.statements import read_statements

RESULTS = Path(__file__).parents[2] / "docs/results"
_COLOURS = {"DuckDB": "#f59f00", "PostgreSQL": "#1c7ed6"}
_ROUNDS = ("at first", "with steps kept", "from a rollup")
_FILLS = ("white", None, "black")


def write_csv(asked: Sequence[Asked], path: Path) -> None:
    """Write a line for each question and engine."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [one.name for one in fields(Asked)], lineterminator="\n")
        writer.writeheader()
        for one in asked:
            writer.writerow({name: _shorten(value) for name, value in asdict(one).items()})


def read_csv(path: Path) -> list[Asked]:
    """Read what `write_csv` wrote."""
    kinds = get_type_hints(Asked)
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Asked(**{name: _read(text, kinds[name]) for name, text in line.items()}) for line in csv.DictReader(file)
        ]


def _shorten(value: Any) -> Any:
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else value


def _read(text: str, kind: Any) -> Any:
    if kind is str or not text:
        return text or None
    return text if kind == str | None else int(text) if kind == int | None else float(text)


def count_planned(asked: Sequence[Asked]) -> str:
    """Return how many of the queries that read private tables plan, in a sentence."""
    private = {statement.number for statement in read_statements() if statement.private} - {20}
    planned = {int(one.query.split()[0]) for one in asked if one.planned} & private
    return f"{len(planned)} of {len(private)} queries that read private tables plan."


def summarise(asked: Sequence[Asked]) -> str:
    """Return the geometric mean and the greatest of the ratios of questions about private tables, by engine."""
    by_engine: dict[tuple[str, str], dict[str, float]] = {}
    for one in asked:
        for which, ratio in zip(_ROUNDS, one.ratios, strict=True):
            if ratio is not None and not one.outcome.startswith(PUBLIC):
                by_engine.setdefault((one.engine, which), {})[one.query.removesuffix(" instead")] = ratio
    means = {
        engine: ", ".join(
            f"{which} {geometric_mean(ratios.values()):.1f} (query {max(ratios, key=ratios.__getitem__)}:"
            f" {max(ratios.values()):.1f})"
            for (one, which), ratios in by_engine.items()
            if one == engine
        )
        for engine, _ in by_engine
    }
    return " ".join(f"{engine}: {numbers}." for engine, numbers in means.items())


def show(asked: Sequence[Asked], console: Console) -> None:
    """Print the table of both engines, how many queries plan, and how many times the plain query they take."""
    grid = Table("engine", "query", "outcome", title="TPC-H's queries as questions about customers")
    for heading in (
        *("epsilon, group", "epsilon, customer", "true", "answered", "of these true", "with slack"),
        *("plain s", "Keyhole s", "plain, processor s", "Keyhole, processor s", "ratio", "kept", "rollup"),
    ):
        grid.add_column(heading, justify="right")
    for one in asked:
        numbers = [one.true, one.returned, one.found, one.right]
        times = [one.plain_s, one.keyhole_s, one.plain_processor_s, one.keyhole_processor_s, *one.ratios]
        shown = ["" if number is None else f"{number:.2g}" for number in (one.group_epsilon, one.unit_epsilon)]
        shown += ["" if number is None else f"{number:,}" for number in numbers]
        shown += ["" if number is None else f"{number:.2f}" for number in times]
        grid.add_row(one.engine, one.query, one.outcome[:40], *shown)
    console.print(grid)
    console.print(count_planned(asked))
    console.print(summarise(asked))


def draw(asked: Sequence[Asked], path: Path) -> None:
    """Draw processor time beside the plain query's, and the price of a customer, by query; same numbers, same bytes."""
    timed = [one for one in asked if one.ratios[0] is not None and not one.outcome.startswith(PUBLIC)]
    queries = list(dict.fromkeys(one.query for one in timed))
    places = {query: place for place, query in enumerate(queries)}
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(7.2, 3.2), layout="constrained")
        times, prices = canvas.subplots(2, 1, sharex=True)
        for engine in dict.fromkeys(one.engine for one in timed):
            own = [one for one in timed if one.engine == engine]
            at = [places[one.query] for one in own]
            colour = _COLOURS.get(engine)
            for place, (which, fill) in enumerate(zip(_ROUNDS, _FILLS, strict=True)):
                ratios = [one.ratios[place] for one in own]
                if not any(ratios):
                    continue  # not measured on this engine
                shown, label = [ratio or math.nan for ratio in ratios], f"{engine}, {which}"
                times.plot(at, shown, "o", markersize=4, color=colour, markerfacecolor=fill or colour, label=label)
        priced = [one for one in timed if one.unit_epsilon is not None and one.engine == timed[0].engine]
        prices.bar([places[one.query] for one in priced], [one.unit_epsilon or 0 for one in priced], color="#006d5b")
        for axes in (times, prices):
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.yaxis.set_minor_formatter(NullFormatter())
        times.axhline(1, color="#343a40", linewidth=0.8)
        times.set_ylabel("times the plain query")
        prices.set_ylabel("epsilon a customer")
        prices.set_xticks(range(len(queries)), [f"Q{query.removesuffix(' instead')}" for query in queries])
        canvas.legend(loc="outside upper center", ncols=3, fontsize=7, frameon=False)
        canvas.savefig(path, metadata={"Software": None})


def main() -> None:
    """Print the ratios for the page, and draw its image."""
    asked = read_csv(RESULTS / "tpch.csv")
    draw(asked, RESULTS / "tpch.png")
    print(summarise(asked))


if __name__ == "__main__":
    main()
