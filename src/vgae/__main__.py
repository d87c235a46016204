"""The process behind the command `vgae` and `python -m vgae`, which listens for Ctrl-C before it loads the rest."""

import os
import signal
import sys
from contextlib import suppress

from vgae.cli.loading import loading, own_process

own_process()
with loading():
    if "_VGAE_COMPLETE" in os.environ:  # a shell asks what could be typed, and waits
        from vgae.cli.completion import main as run_command
    else:
        from vgae.cli.app import main as run_command


def main() -> None:
    """Run the command and end the process with its exit code."""
    code = 0
    try:
        run_command()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done and said
    _leave(code)


def _leave(code: int) -> None:
    """End without taking modules down one by one, which takes half a second once torch is loaded."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads any more, or it is closed
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
