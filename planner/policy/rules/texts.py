"""Rules for the texts of a policy file: characters that no client, source or PostgreSQL can receive."""

from planner.catalog.fault import Fault, Faults

_MARK = "?"  # replaces unprintable characters in a dotted key


def find_text_faults(raw: object, *, place: tuple[str, ...] = ()) -> Faults:
    """Yield a fault for each key or value with a NUL or half of a surrogate pair.

    A variable of the environment may contain half a pair if its bytes are not UTF-8.
    """
    match raw:
        case dict():
            for key, value in raw.items():
                fault = _find_fault(key)
                if fault is not None:
                    yield (*place, key.encode("utf-8", "replace").decode().replace("\0", _MARK)), fault
                    continue
                yield from find_text_faults(value, place=(*place, key))
        case list():
            fault = next((fault for value in raw for _, fault in find_text_faults(value)), None)
            if fault is not None:
                yield place, fault
        case str():
            fault = _find_fault(raw)
            if fault is not None:
                yield place, fault


def _find_fault(text: str) -> Fault | None:
    if "\0" in text:
        return Fault("KH002", "holds a NUL character", hint="Remove it: PostgreSQL has no text with one.")
    if any("\ud800" <= character <= "\udfff" for character in text):
        hint = "Set the variable in the environment to text in UTF-8."
        return Fault("KH002", "is no text in UTF-8", hint=hint)
    return None
