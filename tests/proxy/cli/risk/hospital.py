"""A small hospital: where patients are by the hour, some with a rare illness; a room's name is hostile."""

from pathlib import Path

HOSTILE = "<script>alert(1)</script>\x1b[2J&http://evil"
ROOMS = ("ER", "ICU", HOSTILE)
COUNTS = {("ER", 9): 60, ("ICU", 9): 12, (HOSTILE, 9): 28, ("ER", 10): 30, ("ICU", 10): 50, (HOSTILE, 10): 20}
QUESTION = "SELECT room, hour FROM stays GROUP BY room, hour HAVING count(DISTINCT patient) > 20"
SHARE = "SELECT room FROM stays GROUP BY room HAVING count(*) FILTER (WHERE illness = 'rare') > 0.3 * count(*) + 30"


def install(directory: Path, *, rows_per_unit: int = 2, source: str = "duckdb://", relation: str = "stays.csv") -> Path:
    """Write stays and policy: one line a patient and hour, and a third line that bounding cuts for some."""
    lines, patient = ["patient,room,hour,illness,age"], 0
    for (room, hour), count in COUNTS.items():
        for place in range(count):
            ill = "rare" if room == "ICU" and place % 2 == 0 else "common"
            line = f"{patient},{room},{hour},{ill},{place % 90}"
            lines += [line] * (5 if place % 10 == 0 else 1)
            patient += 1
    (directory / "stays.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    values = ", ".join(f'"{room}"' for room in ROOMS).replace("\x1b", "\\u001b")
    path = directory / "keyhole.toml"
    path.write_text(
        f"""
[source]
url = "{source}"

[accuracy]
tolerance = "30%"

[budget]
epsilon_per_predicate = 2.0
epsilon_per_query = 2.0
epsilon_per_unit = 6.0

[tables.stays]
relation = "{relation}"
privacy_unit = "patient"
max_groups_per_unit = 1
rows_per_unit = {rows_per_unit}
refresh = "static"

[tables.stays.columns.patient]

[tables.stays.columns.room]
key = {{ values = [{values}] }}

[tables.stays.columns.hour]
key = {{ range = [9, 10] }}

[tables.stays.columns.illness]
type = "text"
filter = true

[tables.stays.columns.age]
bounds = [0, 50]
per_unit = [0, 100]

[views.busy]
sql = "{QUESTION}"
""",
        encoding="utf-8",
    )
    return path


def write_prior(directory: Path) -> Path:
    """Where patients usually are."""
    path = directory / "prior.csv"
    usual = {("ER", 9): 40, ("ICU", 9): 20, (HOSTILE, 9): 40, ("ER", 10): 40, ("ICU", 10): 20, (HOSTILE, 10): 0}
    path.write_text("room,hour,people\n" + "".join(f"{r},{h},{n}\n" for (r, h), n in usual.items()), encoding="utf-8")
    return path
