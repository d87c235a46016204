"""Errors worded for the person who can act on them.

`InputError` says that something given to the library is wrong: its message is one sentence that names the file, row or
option and what to do. The command prints it and exits with 2. `TrainingError` says that valid input led to a failure.

Messages quote names, ids and values that come from strangers. They are one line that can be shown anywhere (`visible`),
and not endless: of one that quotes too much, the middle is left out.
"""

from vgae.visible import visible

LONGEST = 1000  # characters of a message about input


class VgaeError(Exception):
    """Base of every error the library raises on purpose.

    >>> import vgae
    >>> issubclass(vgae.InputError, vgae.VgaeError) and issubclass(vgae.TrainingError, vgae.VgaeError)
    True
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(visible(str(message)))


class InputError(VgaeError, ValueError):
    """Something the caller gave cannot be used; the message says what and how to put it right.

    >>> import vgae
    >>> try:
    ...     vgae.VGAE(latent_dim=0).fit([(0, 1)])
    ... except vgae.InputError as error:
    ...     print(error)
    latent_dim: a whole number from 1 to 65536 is needed, got 0.
    """

    def __init__(self, message: object = "") -> None:
        text = visible(str(message))
        super().__init__(text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[3 - LONGEST // 2 :]}")


class TrainingError(VgaeError, RuntimeError):
    """Training went wrong on valid input, for instance by a loss that is no longer finite.

    >>> import vgae
    >>> try:
    ...     vgae.GAE(learning_rate=1e30, iterations=50).fit(vgae.stochastic_block_model(60, 3, seed=0))
    ... except vgae.TrainingError:
    ...     print("the loss is not finite")
    the loss is not finite
    """


class SaveError(VgaeError, OSError):
    """What was computed could not be written; the message says what is kept of it and how to finish."""


class StoppedError(VgaeError):
    """The command was interrupted with Ctrl-C; the message says what is kept and which command continues."""


class OutputClosedError(VgaeError):
    """Whoever read standard output has closed it, as `head` does; there is nothing left to say."""
