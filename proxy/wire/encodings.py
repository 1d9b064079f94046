"""PostgreSQL's client encodings in which SQL text can be read safely: every ASCII byte means that character."""

import codecs

CODECS: dict[str, str] = {
    "UTF8": "utf-8",
    "UNICODE": "utf-8",  # the one alias that PostgreSQL keeps as it was given
    "SQL_ASCII": "utf-8",  # no conversion: the bytes are the server's, which is UTF8
    "LATIN1": "iso8859-1",
    "LATIN2": "iso8859-2",
    "LATIN3": "iso8859-3",
    "LATIN4": "iso8859-4",
    "LATIN5": "iso8859-9",
    "LATIN6": "iso8859-10",
    "LATIN7": "iso8859-13",
    "LATIN8": "iso8859-14",
    "LATIN9": "iso8859-15",
    "WIN1250": "cp1250",
    "WIN1251": "cp1251",
    "WIN1252": "cp1252",
    "WIN1253": "cp1253",
    "WIN1254": "cp1254",
    "WIN1257": "cp1257",
    "KOI8R": "koi8-r",
    "KOI8U": "koi8-u",
    "EUC_JP": "euc-jp",
    "EUC_KR": "euc-kr",
    "EUC_CN": "gb2312",
}


def find_codec(client_encoding: str) -> codecs.CodecInfo | None:
    """Return the Python codec of a PostgreSQL encoding, by the name in ParameterStatus.

    Return None if it is not allowed.
    """
    name = CODECS.get(client_encoding.upper())
    return None if name is None else codecs.lookup(name)
