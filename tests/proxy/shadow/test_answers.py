from hypothesis import given
from hypothesis import strategies as st

from proxy.shadow.answers import ERROR, NOTHING, ROWS, Answers, Ending, Expected
from proxy.wire.backend import CommandComplete, DataRow, ParameterStatus, ReadyForQuery, Report, Signal
from proxy.wire.frames import Frame

FAILURE = Report("E", ((b"M", b"bad"), (b"P", b"3")))


def taken(
    answers: Answers, *messages: Signal | CommandComplete | DataRow | ReadyForQuery | Report | ParameterStatus
) -> bytes:
    return b"".join(answers.take(Frame(message.encode()[0], message.encode())) for message in messages)


def test_hidden_answers_do_not_reach_the_client_and_shown_ones_do() -> None:
    answers = Answers()
    answers.expect(Expected(Ending.PARSE, shown=ERROR))
    answers.expect(Expected(Ending.BIND))
    hidden = answers.expect(Expected(Ending.EXECUTE, shown=ERROR))
    answers.expect(Expected(Ending.SYNC))
    row = DataRow((b"1",))
    assert taken(answers, Signal("1")) == b""
    assert taken(answers, Signal("2")) == Signal("2").encode()
    assert taken(answers, row, CommandComplete(b"SELECT 1")) == b""
    found = hidden.find("D")
    assert found is not None
    assert found.raw == row.encode()
    assert taken(answers, ReadyForQuery(b"T")) == ReadyForQuery(b"T").encode()
    assert answers.settled
    assert answers.status == b"T"


def test_settings_are_told_with_the_end_of_the_text_that_the_client_sent() -> None:
    """PostgreSQL tells of a changed setting just before its ReadyForQuery, of which one in between is Keyhole's own."""
    answers = Answers()
    changed, done = ParameterStatus(b"client_encoding", b"LATIN1"), CommandComplete(b"SET")
    answers.expect(Expected(Ending.EXECUTE))
    answers.expect(Expected(Ending.SYNC, shown=NOTHING))
    answers.expect(Expected(Ending.SYNC))
    assert taken(answers, done, changed, ReadyForQuery(b"I")) == done.encode()
    assert taken(answers, ReadyForQuery(b"I")) == changed.encode() + ReadyForQuery(b"I").encode()
    answers.expect(Expected(Ending.SYNC))
    assert taken(answers, ReadyForQuery(b"I")) == ReadyForQuery(b"I").encode()


def test_an_error_ends_everything_up_to_sync() -> None:
    answers = Answers()
    first = answers.expect(Expected(Ending.PARSE))
    second = answers.expect(Expected(Ending.BIND))
    answers.expect(Expected(Ending.SYNC))
    third = answers.expect(Expected(Ending.PARSE))
    assert taken(answers, FAILURE) == FAILURE.encode()
    assert (first.failed, second.failed, third.failed) == (True, True, False)
    assert not answers.skipping
    taken(answers, ReadyForQuery(b"I"), Signal("1"))
    assert third.done
    assert not third.failed
    assert answers.settled


def test_after_an_error_what_is_sent_before_sync_is_not_answered() -> None:
    answers = Answers()
    answers.expect(Expected(Ending.PARSE))
    taken(answers, FAILURE)
    assert answers.skipping
    for ending in (Ending.BIND, Ending.QUERY):
        assert answers.expect(Expected(ending)).failed
    assert answers.settled
    answers.expect(Expected(Ending.SYNC))
    assert not answers.skipping
    assert not answers.settled


def test_an_error_does_not_end_a_simple_query() -> None:
    answers = Answers()
    query = answers.expect(Expected(Ending.QUERY))
    taken(answers, FAILURE)
    assert not answers.settled
    taken(answers, ReadyForQuery(b"E"))
    assert query.failed
    assert answers.settled
    assert not answers.skipping


def test_an_errors_position_moves_or_goes() -> None:
    for offset, expected in ((4, ((b"M", b"bad"), (b"P", b"7"))), (None, ((b"M", b"bad"),))):
        answers = Answers()
        answers.expect(Expected(Ending.PARSE, offset=offset))
        assert taken(answers, FAILURE) == Report("E", expected).encode()


def test_a_swallowed_error_still_ends_the_batch() -> None:
    answers = Answers()
    answers.expect(Expected(Ending.PARSE, shown=NOTHING))
    assert taken(answers, FAILURE) == b""
    assert answers.skipping
    assert answers.errors == 1


def test_a_tag_is_replaced_and_settings_are_always_shown() -> None:
    answers = Answers()
    answers.expect(Expected(Ending.EXECUTE, shown=ROWS, tag=b"EXPLAIN"))
    status = ParameterStatus(b"TimeZone", b"UTC")
    assert taken(answers, status) == status.encode()
    assert taken(answers, CommandComplete(b"SELECT 9")) == CommandComplete(b"EXPLAIN").encode()


@given(st.lists(st.sampled_from([e for e in Ending if e not in (Ending.SYNC, Ending.QUERY)]), max_size=8), st.data())
def test_whatever_fails_one_sync_settles_the_queue(endings: list[Ending], data: st.DataObject) -> None:
    """Expected answers, those that come and ReadyForQuery always end together, wherever the error falls."""
    letters = {Ending.PARSE: "1", Ending.BIND: "2", Ending.CLOSE: "3", Ending.DESCRIBE: "n", Ending.EXECUTE: "I"}
    fails_at = data.draw(st.integers(0, len(endings)))
    answers = Answers()
    expected = [answers.expect(Expected(ending)) for ending in endings]
    answers.expect(Expected(Ending.SYNC))
    for ending in endings[:fails_at]:
        taken(answers, Signal(letters[ending]))
    if fails_at < len(endings):
        taken(answers, FAILURE)
    taken(answers, ReadyForQuery(b"I"))
    assert answers.settled
    assert [one.failed for one in expected] == [index >= fails_at for index in range(len(endings))]
    assert all(one.done for one in expected)
