"""A shadow ends with its Keyhole, however that ends: a shell waits for a pipe that Keyhole alone holds open."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# A line says that the shadow has been stopped; the pipe's end, that nobody is left to stop it. Nothing but that ends
# the shell: a terminal or a service manager may signal every process at once, and the shadow is still needed then.
_GUARD = """
trap '' HUP INT TERM
cd /
read -r _ && exit 0
test -f "$1/postmaster.pid" && read -r server <"$1/postmaster.pid" && kill -QUIT "$server"
tries=0
while test -f "$1/postmaster.pid" && test "$tries" -lt 100; do tries=$((tries + 1)); sleep 0.1; done
rm -rf -- "$2"
"""


@contextmanager
def guarded(directory: Path) -> Iterator[None]:
    """While the block runs, the end of this process stops the server in `directory` and removes the folder around it.

    The block stops it itself when it ends.
    """
    with subprocess.Popen(  # noqa: S603 - nothing of it is a client's
        ("/bin/sh", "-c", _GUARD, "sh", str(directory), str(directory.parent)),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,
    ) as guard:
        try:
            yield
        finally:
            if guard.stdin is not None:
                with suppress(BrokenPipeError):  # somebody has killed the guard
                    guard.stdin.write(b"stopped\n")
