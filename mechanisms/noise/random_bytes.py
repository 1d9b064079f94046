"""Random bytes, as many as noise takes: the operating system's, or a cipher's under a key of the operating system's.

Linux gives some 400 MB a second, which is half of the time that exact noise takes; a cipher that processors know gives
ten times as much. So anybody who wants many bytes gets the key stream of AES-256 in counter mode, under a key and a
counter that are the operating system's and serve this one call: nothing is kept, so nothing repeats in a process that
forks or is restored from a snapshot. Why so: docs/decisions/0032-random-bytes.md.
"""

import os

_FEW = 1 << 12  # bytes up to which the operating system is as fast as making a cipher of a new key
_KEY_BYTES, _COUNTER_BYTES = 32, 16  # of AES-256: its longest key, and a block


def draw_random_bytes(count: int) -> bytes:
    """Return `count` bytes that nobody can tell from independent uniform ones, as the operating system's own."""
    if count <= _FEW:
        return os.urandom(count)
    # nobody who draws little, such as most commands, waits for this import
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    fresh = os.urandom(_KEY_BYTES + _COUNTER_BYTES)
    stream = Cipher(algorithms.AES(fresh[:_KEY_BYTES]), modes.CTR(fresh[_KEY_BYTES:])).encryptor()
    return stream.update(bytes(count))
