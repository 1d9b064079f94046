"""A statement around a grouped query, whose groups PostgreSQL gets as a list with every group of the question."""

from dataclasses import dataclass

from benchmarks.oracle.windows import list_sizes
from planner.catalog.catalog import Table
from planner.question.question import Question


@dataclass(frozen=True, slots=True)
class GroupedStatement:
    """A statement in whose `text` {m} stands for the grouped query with sizes `n` and `m`, and {total} for a total."""

    table: Table
    keys: tuple[str, ...]
    where: str
    sizes: tuple[str, str]
    text: str

    @property
    def sql(self) -> str:
        """The statement, as an analyst writes it."""
        rows = f"{self.table.name} WHERE {self.where}" if self.where else self.table.name
        keys, (own, other) = ", ".join(self.keys), self.sizes
        grouped = f"SELECT {keys}, {own} AS n, {other} AS m FROM {rows} GROUP BY {keys}"
        return self.text.replace("{m}", grouped).replace("{total}", f"SELECT {other} AS v FROM {rows}")

    @property
    def compares_means(self) -> bool:
        """False: the sizes are counts and sums."""
        return False

    def list_sizes(self, question: Question) -> str:
        """Return SQL for the sizes of every group that a question lists; a group without rows has 0."""
        named = dict(zip("nm", (f"coalesce({size}, 0)" for size in self.sizes), strict=True))
        return list_sizes(self.table, self.keys, self.where, named, question)
