"""Random bytes: whose they are, and that no two calls have the same."""

import os
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from mechanisms.noise import random_bytes as source
from mechanisms.noise.random_bytes import draw_random_bytes

FALSE_ALARM = 1e-8
MANY = 1 << 16


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What the operating system was asked for, and gave; not the bytes that tests repeat."""
    given: list[bytes] = []
    drawn: Callable[[int], bytes] = os.urandom

    def urandom(size: int) -> bytes:
        given.append(drawn(size))
        return given[-1]

    monkeypatch.setattr(source, "os", os)
    monkeypatch.setattr(os, "urandom", urandom)
    return given


@pytest.mark.parametrize("count", [0, 1, 16, 4096])
def test_few_are_the_operating_systems_own(asked: list[bytes], count: int) -> None:
    assert draw_random_bytes(count) == b"".join(asked)
    assert len(asked[0]) == count


@pytest.mark.parametrize("count", [4097, MANY, 3 * MANY + 5])
def test_many_are_a_key_stream_under_a_fresh_key(asked: list[bytes], count: int) -> None:
    found = draw_random_bytes(count)
    assert len(found) == count
    (fresh,) = asked
    assert len(fresh) == 48
    back = Cipher(algorithms.AES(fresh[:32]), modes.CTR(fresh[32:])).decryptor()
    assert back.update(found) == bytes(count)


def test_no_two_calls_have_a_block_in_common(asked: list[bytes]) -> None:
    """Eight calls of 4,096 blocks: any two blocks are alike with probability below 1e-29."""
    calls = [draw_random_bytes(MANY) for _ in range(8)]
    blocks = [{call[start : start + 16] for start in range(0, MANY, 16)} for call in calls]
    assert all(len(one) == MANY // 16 for one in blocks)
    assert all(one.isdisjoint(other) for one, other in combinations(blocks, 2))
    assert len(set(asked)) == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_and_its_parent_draw_apart(asked: list[bytes]) -> None:
    """A process that forked after a draw has nothing of it that could be drawn again."""
    draw_random_bytes(MANY)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, draw_random_bytes(MANY)[:64])
        os._exit(0)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as theirs:
        os.close(writing)
        assert theirs.read() != draw_random_bytes(MANY)[:64]
    assert asked


def test_bytes_are_uniform(asked: list[bytes]) -> None:
    """4 million bytes in 256 cells, and neighbours in 65,536; false alarm 1e-8 per check (chi-square), two checks."""
    drawn = np.frombuffer(b"".join(draw_random_bytes(MANY) for _ in range(64)), dtype=np.uint8)
    assert stats.chisquare(np.bincount(drawn, minlength=256)).pvalue > FALSE_ALARM
    pairs = np.bincount(drawn.view(np.uint16), minlength=1 << 16)
    assert stats.chisquare(pairs).pvalue > FALSE_ALARM
    assert len(asked) == 64
