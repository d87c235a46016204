"""The process behind the command `vgae` and `python -m vgae`, which listens for Ctrl-C before it loads the rest."""

import os
import signal

from vgae.cli.loading import leave, loading, own_process

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
    leave(code)


if __name__ == "__main__":
    main()
