"""How the command ends: its exit code, and one sentence on standard error where it fails.

0     done
1     a failure on good input
2     something that was given cannot be used
130   Ctrl-C
141   standard output was closed by its reader, as `head` does; nothing is printed
"""

import errno
import os
import sys
import traceback
import warnings
from collections.abc import Callable

import typer

from vgae.cli.loading import INTERRUPTED
from vgae.errors import InputError, OutputClosedError, StoppedError, VgaeError
from vgae.parallel.environment import in_group
from vgae.screen import discard, note, shell_line, write

FAILED, REFUSED, UNREAD = 1, 2, 141
ABOUT_NAMES = {errno.EACCES, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.EPERM}
UsageError: type[Exception] = typer.BadParameter.__bases__[0]  # click's, wherever typer keeps it


def exit_code_of(command: Callable[[], int | None], *, debug: bool = False) -> int:
    """Run a command to its end, whatever happens; with debug, an error shows its traceback."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            code = command() or 0
        if code == INTERRUPTED:  # typer makes an exit code of Ctrl-C
            raise KeyboardInterrupt
        write("")  # what is still in the buffer
    except (OutputClosedError, BrokenPipeError, SystemExit):  # the last is typer's answer to a closed pipe
        discard(sys.stdout)
        return UNREAD
    except StoppedError as error:
        return _fail(str(error), INTERRUPTED, debug)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("Interrupted.", INTERRUPTED, debug)
    except InputError as error:
        return _fail(_sentence(str(error)), REFUSED, debug)
    except VgaeError as error:
        return _fail(_sentence(str(error)), FAILED, debug)
    except UsageError as error:
        return _fail(_in_one_line(error.format_message()), REFUSED, debug)  # type: ignore[attr-defined]  # click's
    except MemoryError:
        return _fail("Memory ran out; use a smaller graph or fewer dimensions, or free some memory.", FAILED, debug)
    except OSError as error:
        code = REFUSED if error.errno in ABOUT_NAMES else FAILED
        return _fail(_sentence(_of_the_system(error)), code, debug)
    except Exception as error:  # noqa: BLE001 - the boundary to a person: a sentence instead of a traceback
        words = f"Unexpected {type(error).__name__}: {error}; --debug shows where"
        return _fail(_in_one_line(words), FAILED, debug)
    return code


def same_command(*options: str) -> str:
    """The command that is running, as a line for the shell, with these options in place of --overwrite and --resume."""
    given = [argument for argument in sys.argv[1:] if argument not in ("--overwrite", "--resume", "--debug")]
    line = shell_line(["vgae", *given, *options])
    return f"torchrun … -m {line}" if in_group() and not any(each.startswith("--processes") for each in given) else line


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """A library's warning as one line, without the place in its source."""
    note(f"vgae: warning: {_in_one_line(str(message))}")


def _of_the_system(error: OSError) -> str:
    where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    return f"{where}the system reports: {error.strerror or error}"


def _fail(message: str, code: int, debug: bool) -> int:
    if debug:
        for line in traceback.format_exc().splitlines():
            note(line)
    note(f"vgae: {message}")
    return code


def _sentence(text: str) -> str:
    """The text with a full stop, unless it is a question."""
    text = text.rstrip().rstrip(".")
    return text if text.endswith("?") else text + "."


def _in_one_line(text: str) -> str:
    """What others have worded, perhaps in several lines."""
    return _sentence(" ".join(text.split()))
