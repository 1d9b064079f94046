"""Random bytes for noise, from the operating system, or from a cipher with a key of the operating system.

Linux gives some 400 MB a second, which would take half of the time of exact noise. A cipher in hardware is ten times as
fast. So a request of many bytes gets the key stream of AES-256 in counter mode. Its key and counter come from the
operating system and serve one call. Nothing is kept, so nothing repeats in a process that forks or is restored from a
snapshot. The reasons are in docs/decisions/0032-random-bytes.md.
"""

import os

_FEW = 1 << 12  # bytes up to which the operating system is as fast as making a cipher of a new key
_KEY_BYTES, _COUNTER_BYTES = 32, 16  # of AES-256: its longest key, and a block


def draw_random_bytes(count: int) -> bytes:
    """Return `count` random bytes, as good as independent uniform ones.

    Like the operating system's own bytes, they cannot be distinguished from uniform ones.
    """
    if count <= _FEW:
        return os.urandom(count)
    # nobody who draws little, such as most commands, waits for this import
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    fresh = os.urandom(_KEY_BYTES + _COUNTER_BYTES)
    stream = Cipher(algorithms.AES(fresh[:_KEY_BYTES]), modes.CTR(fresh[_KEY_BYTES:])).encryptor()
    return stream.update(bytes(count))
