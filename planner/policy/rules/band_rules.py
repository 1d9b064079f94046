"""Rules for bands: thresholds that an owner proposes for a measure's aggregates and a table's counts."""

from collections.abc import Iterator, Mapping

from planner.catalog.fault import Fault, Faults
from planner.policy.sections import BandsSection, ColumnSection, TableSection

_OF_MEASURES, _OF_TABLES = ("sum", "avg"), ("rows", "units")


def find_column_bands_faults(place: tuple[str, ...], column: ColumnSection) -> Faults:
    """Yield a fault for bands of a column that is no measure, and for bands that only a table can have."""
    if column.bands is None:
        return
    if column.bounds is None:
        hint = "Add bounds = [lowest, highest], which make the column a measure, or remove the bands."
        yield (*place, "bands"), Fault("KH004", "needs bounds", hint=hint)
    hint = "Write [5000, 10000] for the sums of the measure, or { sum = [...], avg = [...] }."
    yield from _find_misplaced_bands((*place, "bands"), column.bands, _OF_TABLES, hint=hint)


def find_table_bands_faults(place: tuple[str, ...], table: TableSection) -> Faults:
    """Yield a fault for a table's bands that only a measure can have, or that are no whole numbers of at least 1."""
    here = (*place, "bands")
    if table.bands is None:
        return
    hint = "Write { rows = [...], units = [...] } here, and sums and averages at the measure."
    yield from _find_misplaced_bands(here, table.bands, _OF_MEASURES, hint=hint)
    for key in _OF_TABLES:
        if any(number < 1 or number % 1 for number in getattr(table.bands, key) or ()):
            hint = "Write whole numbers from 1 on, such as [20, 100]."
            yield (*here, key), Fault("KH004", "has a threshold of counts that is no whole number from 1 on", hint=hint)
    if table.bands.units is not None and not table.privacy_unit:
        hint = "Write rows = [...]: each row is a unit."
        yield (*here, "units"), Fault("KH004", 'has no meaning when privacy_unit = "row"', hint=hint)


def _find_misplaced_bands(place: tuple[str, ...], bands: BandsSection, keys: tuple[str, ...], *, hint: str) -> Faults:
    for key in keys:
        if getattr(bands, key) is not None:
            yield (*place, key), Fault("KH004", "has no meaning here", hint=hint)
    if not bands.model_fields_set:
        yield place, Fault("KH004", "has no thresholds", hint=hint)


def describe_band_doubts(tables: Mapping[str, TableSection]) -> Iterator[str]:
    """Yield a sentence for each band that no group, or every group, is in because of the measure's bounds."""
    for table, section in tables.items():
        for name, column in section.columns.items():
            if column.bands is None or column.bounds is None:
                continue
            place, (low, high) = f"tables.{table}.columns.{name}.bands", column.bounds
            for number in column.bands.avg or ():
                if number > high:
                    yield f"{place} has the average {number:f}, which none reaches: values are clipped to {high:f}."
                elif number <= low:
                    yield f"{place} has the average {number:f}, which all reach: values are clipped to {low:f}."
            for number in column.bands.sum or ():
                if number > 0 >= high:
                    yield f"{place} has the sum {number:f}, which none reaches: values are clipped to {high:f}."
                elif number <= 0 <= low:
                    yield f"{place} has the sum {number:f}, which all reach: values are clipped to {low:f} or more."
