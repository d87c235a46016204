"""The process behind the command `vgae` and `python -m vgae`.

Loading torch and the rest takes seconds, in which Ctrl-C would end in a traceback out of somebody else's module, or be
swallowed by it. So this file listens for it before anything else is loaded.
"""

import os
import signal
import sys
from types import FrameType, TracebackType

INTERRUPTED = 130


def _stop_loading(number: int, frame: FrameType | None) -> None:
    """Ctrl-C while modules are loaded: end at once, past all buffers and past whatever would catch an exception."""
    del number, frame
    os.write(2, b"\nvgae: Interrupted; nothing was kept.\n")
    os._exit(INTERRUPTED)


def _end_quietly(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """An exception that nothing has caught; Ctrl-C, once more while the first is being answered, has no traceback."""
    if issubclass(kind, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    sys.__excepthook__(kind, error, trace)


sys.excepthook = _end_quietly
LISTENING = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not in the background, where it is ignored
if LISTENING:
    signal.signal(signal.SIGINT, _stop_loading)

from vgae.cli.app import main as run_command  # noqa: E402 - not before Ctrl-C is listened for

if LISTENING:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> None:
    """Run the command and end the process with its exit code."""
    try:
        run_command()
    finally:
        if LISTENING:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done and said


if __name__ == "__main__":
    main()
