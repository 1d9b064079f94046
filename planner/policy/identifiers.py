"""Columns that identify a person or a thing, recognised by their names and types alone.

`keyhole init` uses them to propose the privacy unit. `keyhole check` uses them to warn if each row is protected by
itself.
"""

import re
from collections.abc import Iterable, Sequence

from planner.catalog.catalog import SqlType
from planner.catalog.sql_types import SourceColumn, read_sql_type, read_text_limit


def _make_word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


SMALL_INTEGERS = frozenset({"smallint", "tinyint", "utinyint", "int2"})
"""Types with so few values that they may be groups."""
_SHORTEST = 3  # characters of a text that identifies people: two are a state, a language, a sex
_BOUNDARY = re.compile(r"(?<=[a-zäöüß])(?=[A-ZÄÖÜ])|(?<=[A-Z])(?=[A-Z][a-z])|[\W_]+")
ID_WORDS = _make_word_set("id uuid guid key ref sk")
NUMBER_WORDS = _make_word_set("no nr num number code reference nummer numero número numéro kennung")
_COMPOUND_NUMBER = re.compile(r".+(nummer|nr|kennung|numero|número|numéro)")
# what a name says of a person whom it names: patient_medical_record_no, customer_account_number, user_name
_OF_PERSON = (
    ID_WORDS | NUMBER_WORDS | _make_word_set("name account card record medical health insurance hash token address")
)
_PERSON = re.compile(
    r"(person|people|patient|customer|client|member|user|employee|household|student|pupil|visitor|guest|subject|citizen"
    r"|resident|respondent|participant|subscriber|passenger|driver|worker|applicant|beneficiary|donor|voter|taxpayer"
    r"|tenant|individual|insured|consumer|buyer|cust|emp|kunde|mitglied|mitarbeiter|haushalt|besucher|gast|schueler"
    r"|schüler|versicherte|cliente|paciente|usuario|persona|utilisateur|personne)"
    rf"(?P<several>n|en|s|es|r)?(?P<rest>{'|'.join(sorted(_OF_PERSON))})?"
)
_AMBIGUOUS = frozenset({"subject", "individual"})  # of an e-mail, of a rate: people only with an id behind
_PERSONAL = _make_word_set("mrn ssn nhs nino email mail phone telephone passport uid bsn cpf iban")
# what makes a number a person's: medical_record_number, national_insurance_no, account_number
_PRIVATE = _make_word_set("medical insurance social national personal mobile account card licence license")
_COUNTED = _make_word_set("number num n nb count total is has was avg mean min max sum share pct")
_TIME = _make_word_set(
    "date time year quarter month week day weekday dow doy hour minute second jahr quartal monat woche tag"
)
_THINGS = _make_word_set(
    "order invoice product stock item sku article house room bed floor street building zip postal post country city "
    "state region district county province zone location place store shop branch office site warehouse department "
    "ward vendor supplier brand category class type kind status group segment band level grade rank version language "
    "currency rate ratecode payment flight trip route line row batch ticket transaction event session visit encounter "
    "booking bill tax discount diagnosis procedure"
)


def find_people(columns: Iterable[SourceColumn]) -> tuple[str, ...]:
    """Return the columns that may identify people: first those with names of people, then ids with neutral names."""
    told, untold = [], []
    for column in columns:
        if names_person(column):
            told.append(column.name)
        elif _may_name_person(column):
            untold.append(column.name)
    return (*told, *untold)


def names_person(column: SourceColumn) -> bool:
    """Return True if a column's name says that each of its values identifies a person."""
    words = split_words(column.name)
    if not _has_many_values(column) or (len(words) > 1 and words[0] in _COUNTED):
        return False
    return _has_person(words) or _has_personal_number(words)


def names_people(word: str) -> bool:
    """Return True if a lower-case word, such as the name of a table, means people."""
    found = _PERSON.fullmatch(word)
    return found is not None and found["rest"] is None


def is_identifier(column: SourceColumn) -> bool:
    """Return True if a column identifies a person or a thing, so that sums of its values are meaningless."""
    fits = read_sql_type(column.declared) in (SqlType.INTEGER, SqlType.TEXT, SqlType.UUID, SqlType.NUMERIC)
    words = split_words(column.name)
    if not fits or not words or _TIME.intersection(words):
        return False
    is_number = len(words) > 1 and words[-1] in NUMBER_WORDS
    return words[-1] in ID_WORDS or is_number or bool(_COMPOUND_NUMBER.fullmatch(words[-1])) or names_person(column)


def _may_name_person(column: SourceColumn) -> bool:
    words = split_words(column.name)
    is_id = len(words) > 1 and words[-1] in ID_WORDS and words[0] not in _COUNTED
    return is_id and _has_many_values(column) and not (_TIME | _THINGS).intersection(words)


def _has_person(words: Sequence[str]) -> bool:
    """Return True if the last word means a person, or is followed only by words for an identifier or a name."""
    tail = len(words) - 1
    while tail >= 0 and words[tail] in _OF_PERSON:
        tail -= 1
    if tail < 0:
        return False
    found = _PERSON.fullmatch(words[tail])
    if found is None:
        return words[tail] in _PERSONAL
    has_id = tail < len(words) - 1 or found["rest"] is not None
    return has_id or (found["several"] is None and words[tail] not in _AMBIGUOUS)


def _has_personal_number(words: Sequence[str]) -> bool:
    is_number = len(words) > 1 and words[-1] in ID_WORDS | NUMBER_WORDS - {"code"}
    return is_number and any(word in _PRIVATE for word in words) and not (_TIME | _THINGS).intersection(words)


def _has_many_values(column: SourceColumn) -> bool:
    if column.enumerated or column.declared.lower() in SMALL_INTEGERS:
        return False
    kind = read_sql_type(column.declared)
    if kind is SqlType.TEXT:
        return (read_text_limit(column.declared) or _SHORTEST) >= _SHORTEST
    return kind in (SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE, SqlType.UUID)  # some files hold ids as double


def split_words(name: str) -> list[str]:
    """Split a name into lower-case words without numbers: `Patient ID`, `patient-id`, `patientId2`."""
    parts = (part.strip("0123456789").lower() for part in _BOUNDARY.split(name))
    return [part for part in parts if part]
