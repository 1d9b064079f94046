"""sqlglot's parser of PostgreSQL, which reads any expression inside ROLLUP, CUBE and GROUPING SETS: `x > 10`, too."""

from sqlglot import exp
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import TokenType


class GroupingParser(PostgresParser):
    """A parser of one statement."""

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:  # noqa: FBT001, FBT002
        for word, kind in ((TokenType.CUBE, exp.Cube), (TokenType.ROLLUP, exp.Rollup)):
            if not with_prefix and self._match(word):
                return self.expression(kind(expressions=self._parse_wrapped_csv(self._parse_disjunction)))
        return super()._parse_cube_or_rollup(with_prefix)

    def _parse_grouping_set(self) -> exp.Expr | None:
        return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()
