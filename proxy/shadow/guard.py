"""A guard process that stops the shadow if Keyhole ends for any reason.

The guard is a shell that waits for the end of a pipe. Only Keyhole holds the pipe open.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# A line says that the shadow has been stopped; the pipe's end, that nobody is left to stop it. Nothing but that ends
# the shell: a terminal or a service manager may signal every process at once, and the shadow is still needed then.
# What is about to make the folder's files or to start the server is no server yet, and would do so without Keyhole. A
# process that has just been started has no arguments for a moment, so nobody is gone before three looks found nobody.
# Who was started in the background of a script may ignore QUIT, and is killed after three seconds.
_GUARD = """
trap '' HUP INT TERM
cd /
read -r _ && exit 0
tries=0
quiet=0
while test "$quiet" -lt 3 && test "$tries" -lt 100; do
    found=
    signal=QUIT
    test "$tries" -lt 30 || signal=KILL
    for one in $(grep -lsF -- "$1" /proc/[0-9]*/cmdline); do
        process=${one#/proc/}
        process=${process%/cmdline}
        read -r name <"/proc/$process/comm"
        case $name in initdb | pg_ctl | postgres) kill -"$signal" "$process" && found=yes ;; esac
    done
    test -f "$1/postmaster.pid" && read -r server <"$1/postmaster.pid" && kill -"$signal" "$server" && found=yes
    test "$found" || rm -rf -- "$2" || found=yes
    quiet=$((quiet + 1))
    test "$found" && quiet=0
    sleep 0.1
    tries=$((tries + 1))
done
"""


@contextmanager
def stop_server_with_process(directory: Path) -> Iterator[None]:
    """Stop the server in `directory`, and remove its parent folder, if this process ends during the block.

    An error in the block has the same effect. If the block ends without one, it must have stopped the server itself.
    """
    with subprocess.Popen(  # noqa: S603 - nothing of it is a client's
        ("/bin/sh", "-c", _GUARD, "sh", str(directory), str(directory.parent)),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,
    ) as guard:
        assert guard.stdin is not None
        try:
            yield
        except BaseException:
            guard.stdin.close()
            guard.wait()
            raise
        with suppress(BrokenPipeError):  # the guard was killed
            guard.stdin.write(b"stopped\n")
