"""The help of a group of commands, in sections: a command stands in the one that its panel names."""

from typing import Any

from typer.core import TyperGroup


class Sections(TyperGroup):
    """A group whose help lists its commands by their panels, in the order in which they were registered."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the lists."""
        sections: dict[str, list[tuple[str, str]]] = {}
        widest = max(map(len, self.commands))
        for name in self.list_commands(ctx):
            command: Any = self.commands[name]
            summary = command.get_short_help_str(formatter.width - widest - 6)  # as typer does: margins and a gap
            sections.setdefault(command.rich_help_panel, []).append((name, summary))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows, col_max=widest)
