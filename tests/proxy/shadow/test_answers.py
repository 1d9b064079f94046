from hypothesis import given
from hypothesis import strategies as st

from proxy.shadow.answers import ERROR, NOTHING, ROWS, AnswerEnd, AnswerQueue, ExpectedAnswer
from proxy.wire.backend import CommandComplete, DataRow, EmptyMessage, ParameterStatus, ReadyForQuery, Report
from proxy.wire.frames import Frame

FAILURE = Report("E", ((b"M", b"bad"), (b"P", b"3")))


def taken(
    answers: AnswerQueue, *messages: EmptyMessage | CommandComplete | DataRow | ReadyForQuery | Report | ParameterStatus
) -> bytes:
    return b"".join(answers.take_frame(Frame(message.encode()[0], message.encode())) for message in messages)


def test_hidden_answers_do_not_reach_the_client_and_shown_ones_do() -> None:
    answers = AnswerQueue()
    answers.expect(ExpectedAnswer(AnswerEnd.PARSE, shown_frames=ERROR))
    answers.expect(ExpectedAnswer(AnswerEnd.BIND))
    hidden = answers.expect(ExpectedAnswer(AnswerEnd.EXECUTE, shown_frames=ERROR))
    answers.expect(ExpectedAnswer(AnswerEnd.SYNC))
    row = DataRow((b"1",))
    assert taken(answers, EmptyMessage("1")) == b""
    assert taken(answers, EmptyMessage("2")) == EmptyMessage("2").encode()
    assert taken(answers, row, CommandComplete(b"SELECT 1")) == b""
    found = hidden.find_frame("D")
    assert found is not None
    assert found.raw == row.encode()
    assert taken(answers, ReadyForQuery(b"T")) == ReadyForQuery(b"T").encode()
    assert answers.is_settled
    assert answers.status == b"T"


def test_settings_are_told_with_the_end_of_the_text_that_the_client_sent() -> None:
    """PostgreSQL tells of a changed setting just before its ReadyForQuery, of which one in between is Keyhole's own."""
    answers = AnswerQueue()
    changed, done = ParameterStatus(b"client_encoding", b"LATIN1"), CommandComplete(b"SET")
    answers.expect(ExpectedAnswer(AnswerEnd.EXECUTE))
    answers.expect(ExpectedAnswer(AnswerEnd.SYNC, shown_frames=NOTHING))
    answers.expect(ExpectedAnswer(AnswerEnd.SYNC))
    assert taken(answers, done, changed, ReadyForQuery(b"I")) == done.encode()
    assert taken(answers, ReadyForQuery(b"I")) == changed.encode() + ReadyForQuery(b"I").encode()
    answers.expect(ExpectedAnswer(AnswerEnd.SYNC))
    assert taken(answers, ReadyForQuery(b"I")) == ReadyForQuery(b"I").encode()


def test_an_error_ends_everything_up_to_sync() -> None:
    answers = AnswerQueue()
    first = answers.expect(ExpectedAnswer(AnswerEnd.PARSE))
    second = answers.expect(ExpectedAnswer(AnswerEnd.BIND))
    answers.expect(ExpectedAnswer(AnswerEnd.SYNC))
    third = answers.expect(ExpectedAnswer(AnswerEnd.PARSE))
    assert taken(answers, FAILURE) == FAILURE.encode()
    assert (first.failed, second.failed, third.failed) == (True, True, False)
    assert not answers.skipping
    taken(answers, ReadyForQuery(b"I"), EmptyMessage("1"))
    assert third.is_complete
    assert not third.failed
    assert answers.is_settled


def test_after_an_error_what_is_sent_before_sync_is_not_answered() -> None:
    answers = AnswerQueue()
    answers.expect(ExpectedAnswer(AnswerEnd.PARSE))
    taken(answers, FAILURE)
    assert answers.skipping
    for ending in (AnswerEnd.BIND, AnswerEnd.QUERY):
        assert answers.expect(ExpectedAnswer(ending)).failed
    assert answers.is_settled
    answers.expect(ExpectedAnswer(AnswerEnd.SYNC))
    assert not answers.skipping
    assert not answers.is_settled


def test_an_error_does_not_end_a_simple_query() -> None:
    answers = AnswerQueue()
    query = answers.expect(ExpectedAnswer(AnswerEnd.QUERY))
    taken(answers, FAILURE)
    assert not answers.is_settled
    taken(answers, ReadyForQuery(b"E"))
    assert query.failed
    assert answers.is_settled
    assert not answers.skipping


def test_an_errors_position_moves_or_goes() -> None:
    for offset, expected in ((4, ((b"M", b"bad"), (b"P", b"7"))), (None, ((b"M", b"bad"),))):
        answers = AnswerQueue()
        answers.expect(ExpectedAnswer(AnswerEnd.PARSE, offset=offset))
        assert taken(answers, FAILURE) == Report("E", expected).encode()


def test_a_swallowed_error_still_ends_the_batch() -> None:
    answers = AnswerQueue()
    answers.expect(ExpectedAnswer(AnswerEnd.PARSE, shown_frames=NOTHING))
    assert taken(answers, FAILURE) == b""
    assert answers.skipping
    assert answers.errors == 1


def test_a_tag_is_replaced_and_settings_are_always_shown() -> None:
    answers = AnswerQueue()
    answers.expect(ExpectedAnswer(AnswerEnd.EXECUTE, shown_frames=ROWS, tag=b"EXPLAIN"))
    status = ParameterStatus(b"TimeZone", b"UTC")
    assert taken(answers, status) == status.encode()
    assert taken(answers, CommandComplete(b"SELECT 9")) == CommandComplete(b"EXPLAIN").encode()


@given(
    st.lists(st.sampled_from([e for e in AnswerEnd if e not in (AnswerEnd.SYNC, AnswerEnd.QUERY)]), max_size=8),
    st.data(),
)
def test_whatever_fails_one_sync_settles_the_queue(endings: list[AnswerEnd], data: st.DataObject) -> None:
    """Expected answers, those that come and ReadyForQuery always end together, wherever the error falls."""
    letters = {
        AnswerEnd.PARSE: "1",
        AnswerEnd.BIND: "2",
        AnswerEnd.CLOSE: "3",
        AnswerEnd.DESCRIBE: "n",
        AnswerEnd.EXECUTE: "I",
    }
    fails_at = data.draw(st.integers(0, len(endings)))
    answers = AnswerQueue()
    expected = [answers.expect(ExpectedAnswer(ending)) for ending in endings]
    answers.expect(ExpectedAnswer(AnswerEnd.SYNC))
    for ending in endings[:fails_at]:
        taken(answers, EmptyMessage(letters[ending]))
    if fails_at < len(endings):
        taken(answers, FAILURE)
    taken(answers, ReadyForQuery(b"I"))
    assert answers.is_settled
    assert [one.failed for one in expected] == [index >= fails_at for index in range(len(endings))]
    assert all(one.is_complete for one in expected)
