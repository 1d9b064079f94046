"""The catalogue of everything Keyhole refuses, and the one exception that carries an entry to the client.

A message depends on schema, policy, ledger and the analyst's own text, never on private data.
`docs/errors.md` documents every entry; a test compares the two.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """A catalogued refusal: its stable code, its SQLSTATE, and the meaning of the code in one line."""

    code: str
    sqlstate: str
    meaning: str


def _read_entries(*rows: tuple[str, str, str]) -> dict[str, Entry]:
    return {code: Entry(code=code, sqlstate=sqlstate, meaning=meaning) for code, sqlstate, meaning in rows}


CATALOGUE: dict[str, Entry] = _read_entries(
    # KH0xx: the policy and the set-up
    ("KH001", "F0000", "the policy file cannot be read or is not valid TOML"),
    ("KH002", "F0000", "a policy key is unknown, missing or has a wrong value"),
    ("KH003", "F0000", "a column's key domain is missing, empty, repeated or of another type"),
    ("KH004", "F0000", "a measure's bounds, grid, per-unit range or bands do not fit together"),
    ("KH005", "F0000", "the privacy unit or its contribution bounds are incomplete"),
    (
        "KH006",
        "F0000",
        "the policy names a table or column that the source lacks, or that has another type there",
    ),
    ("KH007", "F0000", "a table or key domain was never pinned, or differs from what was pinned"),
    ("KH008", "F0000", "the source cannot be reached or opened"),
    ("KH009", "F0000", "the ledger cannot be reached or opened"),
    ("KH010", "F0000", "a derived column's expression is not on the allow-list"),
    ("KH011", "F0000", "a picture can be written only as SVG or HTML"),
    ("KH012", "F0000", "the certificate, its key or the clients' authority cannot be used for TLS"),
    ("KH013", "F0000", "the PostgreSQL of the shadow cannot be used"),
    ("KH014", "F0000", "the files of a relation cannot be read, or do not form one table"),
    ("KH016", "F0000", "the ledger is missing, or is not the one that was in use"),
    # KH1xx: the statement is not a question that Keyhole may answer
    ("KH100", "42601", "the statement cannot be parsed"),
    ("KH101", "0A000", "the select list asks for more than keys and constants"),
    ("KH102", "42501", "the statement is not on the allow-list"),
    ("KH103", "42501", "a private table is used outside a question"),
    ("KH104", "0A000", "the question has no HAVING"),
    ("KH105", "0A000", "the question has no GROUP BY keys"),
    ("KH106", "0A000", "a clause of the question is not supported"),
    (
        "KH107",
        "0A000",
        "a join that could count a row twice, or a subquery or several private tables that a question cannot have",
    ),
    ("KH108", "42601", "several statements where one is expected"),
    ("KH109", "42P02", "a parameter has no value"),
    ("KH110", "0A000", "a subquery that does not give one row per privacy unit and key"),
    # KH2xx: the question's keys, conditions and atoms
    ("KH201", "42703", "an unknown column"),
    ("KH202", "0A000", "a key without a public domain"),
    ("KH203", "0A000", "a measure without declared bounds"),
    ("KH204", "0A000", "an aggregate or atom that is not supported"),
    ("KH205", "0A000", "a row condition that is not on the allow-list"),
    ("KH206", "0A000", "an atom that needs a guard against groups without values"),
    ("KH207", "0A000", "a HAVING that is not a boolean formula of threshold atoms"),
    ("KH208", "0A000", "a threshold that is not a constant"),
    ("KH209", "0A000", "COUNT(DISTINCT) of several columns that are not the privacy unit"),
    ("KH210", "54000", "too many keys"),
    ("KH211", "54000", "too many literals"),
    ("KH212", "42804", "a constant of the wrong type for its column"),
    ("KH213", "54000", "a joined public table that is too large"),
    ("KH214", "54000", "LIKE patterns that could take too long on a single row"),
    ("KH215", "42P10", "a position that is not in the select list"),
    ("KH220", "22023", "a question whose answer follows from declared bounds"),
    # KH3xx: accuracy and budget
    ("KH301", "53400", "not enough budget left for some keys"),
    ("KH302", "53400", "the question costs more than one question may"),
    ("KH303", "22023", "the accuracy asked for cannot be reached"),
    ("KH304", "22023", "a tolerance that does not fit the threshold"),
    ("KH305", "53400", "not enough budget left for the privacy unit"),
    ("KH306", "53400", "the analyst's own cap is reached"),
    ("KH307", "53400", "the mechanism stopped without an answer"),
    ("KH308", "42501", "the question waits for the owner's approval"),
    ("KH309", "53400", "not enough budget left for the table"),
    ("KH310", "53400", "not enough budget left for a release"),
    ("KH311", "22023", "the share of units to cut is too small for this noise"),
    ("KH312", "22023", "a column whose type has no largest value"),
    ("KH313", "55006", "the same release is under way"),
    ("KH314", "22023", "an outcome or score from which no curve can be made"),
    ("KH315", "54000", "more groups than a release can have"),
    ("KH316", "22023", "a publication that protects nobody's presence"),
    ("KH317", "55000", "a publication outside the budget can be drawn only once"),
    ("KH318", "42501", "the owner declined the question"),
    ("KH319", "54000", "the question would take too long"),
    # KH4xx: session and settings
    ("KH401", "28P01", "authentication failed"),
    ("KH402", "22023", "an invalid keyhole setting"),
    ("KH403", "42704", "an unknown keyhole setting"),
    ("KH404", "0A000", "a protocol feature that is not supported"),
    ("KH405", "08P01", "a protocol violation"),
    ("KH406", "57P03", "the server is not ready"),
    ("KH407", "28000", "the connection is not encrypted"),
    ("KH408", "22023", "a malformed REST request"),
    ("KH409", "57014", "the question was cancelled"),
    ("KH410", "54000", "too many prepared statements or portals"),
    ("KH411", "57P01", "the tables have changed since the session began"),
    ("KH430", "53400", "too many requests"),
    ("KH431", "22023", "an idempotency key that belongs to another request"),
    ("KH432", "55006", "an idempotency key whose first request has no known end"),
    # KH5xx: the source
    ("KH501", "58000", "the source could not answer"),
    ("KH502", "58030", "the ledger is not available"),
    ("KH503", "53400", "too many questions failed in the source"),
    # KH6xx: monitors
    ("KH601", "22023", "a monitor whose windows, looks and horizon do not fit together"),
    ("KH602", "0A000", "a question that no monitor can watch"),
    ("KH603", "0A000", "a table that no monitor can watch"),
    ("KH604", "55000", "a monitor whose looks lie in the future, by this machine's clock"),
    ("KH605", "42P01", "no such monitor, or not one that the analyst may read"),
    ("KH606", "55000", "a monitor that is not running, is running already, or has changed"),
    # KH9xx
    ("KH900", "XX000", "an internal error"),
)

_MOST_WRITTEN = 80  # characters of SQL in the middle of a sentence: of what is longer, nobody finds the rest behind it


def cut_at_word(text: str) -> str:
    """Return SQL short enough for a sentence: a longer text ends after a word, with dots.

    >>> cut_at_word("CASE " + "WHEN ward = 'A' THEN 1 " * 5 + "END")
    "CASE WHEN ward = 'A' THEN 1 WHEN ward = 'A' THEN 1 WHEN ward = 'A' THEN 1 ..."
    """
    if len(text) <= _MOST_WRITTEN:
        return text
    end = text.rfind(" ", 0, _MOST_WRITTEN - 3)
    return f"{text[:end]} ..." if end > 0 else text[:_MOST_WRITTEN]


class KeyholeError(Exception):
    """A catalogued refusal. `position` is the 1-based character offset in the analyst's own text, if any."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.entry = CATALOGUE[code]
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position

    @property
    def code(self) -> str:
        """The stable `KHnnn` code."""
        return self.entry.code

    @property
    def sqlstate(self) -> str:
        """The five-character SQLSTATE sent to PostgreSQL clients."""
        return self.entry.sqlstate

    def shift_position(self, *, offset: int) -> "KeyholeError":
        """Return the refusal with its position moved by `offset`, for a longer text that contains this text."""
        position = None if self.position is None else self.position + offset
        return KeyholeError(self.code, self.message, detail=self.detail, hint=self.hint, position=position)

    def replace_hint(self, hint: str) -> "KeyholeError":
        """Return the same refusal with another hint."""
        return KeyholeError(self.code, self.message, detail=self.detail, hint=hint, position=self.position)

    def drop_position(self) -> "KeyholeError":
        """Return the refusal without its position, which does not refer to the client's text."""
        return KeyholeError(self.code, self.message, detail=self.detail, hint=self.hint)


class UnknownColumn(KeyholeError):
    """The refusal KH201 for a name, `column`, that no column of the question's table has."""

    def __init__(
        self, column: str, message: str, *, detail: str | None, hint: str | None, position: int | None
    ) -> None:
        super().__init__("KH201", message, detail=detail, hint=hint, position=position)
        self.column = column


def refuse_unsupported(
    message: str, *, position: int | None, hint: str | None = None, detail: str | None = None
) -> KeyholeError:
    """Return KH102 for a statement, or a part of one, off the allow-list."""
    return KeyholeError(
        "KH102",
        message,
        detail=detail
        or "Allowed: SELECT, WITH, VALUES, TABLE, SET, SHOW, RESET, transactions, cursors, PREPARE, EXECUTE, "
        "DEALLOCATE, DISCARD, and EXPLAIN without ANALYZE.",
        hint=hint or "Run other statements on the source itself, with the owner's rights.",
        position=position,
    )
