"""The process behind the command `vgae` and `python -m vgae`, which listens for Ctrl-C before it loads the rest."""

import signal
import sys

from vgae.cli.loading import end_quietly, loading

sys.excepthook = end_quietly
with loading():
    from vgae.cli.app import main as run_command


def main() -> None:
    """Run the command and end the process with its exit code."""
    try:
        run_command()
    finally:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done and said


if __name__ == "__main__":
    main()
