"""Errors worded for the person who can act on them.

`InputError` says that something given to the library is wrong: its message is one sentence that names the file, row or
option and what to do. The command prints it and exits with 2. `TrainingError` says that valid input led to a failure.
"""


class VgaeError(Exception):
    """Base of every error the library raises on purpose."""


class InputError(VgaeError, ValueError):
    """Something the caller gave cannot be used; the message says what and how to put it right."""


class TrainingError(VgaeError, RuntimeError):
    """Training went wrong on valid input, for instance by a loss that is no longer finite."""


class SaveError(VgaeError, OSError):
    """What was computed could not be written; the message says what is kept of it and how to finish."""


class StoppedError(VgaeError):
    """The command was interrupted with Ctrl-C; the message says what is kept and which command continues."""


class OutputClosedError(VgaeError):
    """Whoever read standard output has closed it, as `head` does; there is nothing left to say."""
