"""The command `vgae`: which commands it has, and how it starts.

Results go to standard output, everything else to standard error; with `--json`, one object on standard output and
nothing else there. Exit codes are listed in vgae.cli.exits.

A command is the function of its name in the module that the table below names. The module is loaded, and the command's
options are built, when the command is called: `vgae --help` needs neither, and a part of a model that is registered
before the call is among the options. A model with options of its own, as a stack has, has a function of its own for a
command too, which is taken where --model names it.
"""

import os
import sys
import time
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperGroup

from vgae.cli.both_spellings import BothSpellings, in_both_spellings
from vgae.cli.exits import exit_code_of
from vgae.cli.loading import INTERRUPTED, loading
from vgae.cli.shells import OWN as OWN_SHELL
from vgae.cli.shells import SHELLS, install, named_shell, script
from vgae.errors import InputError
from vgae.parallel.environment import SIZE, in_group, speaks
from vgae.screen import noting, prepare_streams, print_line, silence, write
from vgae.version import __version__

SETTINGS: dict[str, Any] = {
    "add_completion": False,  # typer's own would load the commands; vgae.cli.completion does not
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,  # plain text, in which [default: …] is not taken for markup
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


@dataclass(frozen=True)
class CommandEntry:
    """Where the function of a command is, and what the command is for."""

    module: str
    help: str
    epilog: str | None = None


COMMANDS = {
    "train": CommandEntry(
        "vgae.cli.train",
        "Train a model on a graph, save it as a run, and say how it compares with cheap heuristics.",
        "--model stack trains many models and learns how far to trust each of them; it has options of its own: "
        "vgae train --model stack --help.",
    ),
    "evaluate": CommandEntry(
        "vgae.cli.evaluate", "Score a run on its held-out links: AUC, AP, MRR, Hits@K, and calibration."
    ),
    "plot": CommandEntry(
        "vgae.cli.evaluate", "Draw a run: latent space, training curves, ROC and precision-recall, or reliability."
    ),
    "explore": CommandEntry(
        "vgae.cli.explore",
        "Write a page for a browser, one file without requests: a map of the nodes, their links and predicted ones.",
    ),
    "embed": CommandEntry(
        "vgae.cli.links", "Write the embedding of every node; with features, of another graph or of new nodes too."
    ),
    "recommend": CommandEntry(
        "vgae.cli.links", "List the most likely links that are not known yet, of the whole graph or node by node."
    ),
    "similar": CommandEntry("vgae.cli.links", "List the nodes with the embeddings most like a node's."),
    "cluster": CommandEntry(
        "vgae.cli.cluster", "Put the nodes into clusters: those of a mixture prior, or by k-means; compare with labels."
    ),
    "predict": CommandEntry("vgae.cli.links", "Give the probability of a link for each pair of a table."),
    "explain": CommandEntry(
        "vgae.cli.explain",
        "Say what speaks for a link between two nodes: base by base of a stack; common neighbours, paths, features.",
    ),
    "baseline": CommandEntry(
        "vgae.cli.baselines",
        "Score a baseline on the split that train uses, or all of them: sc, dw, cn, aa, ra, pa.",
    ),
    "reproduce": CommandEntry(
        "vgae.cli.paper", "Run the paper's Table 1 and Figure 1 again; results in the folder are not computed twice."
    ),
    "tune": CommandEntry(
        "vgae.cli.tune",
        "Search for the parts and options that suit a graph, by its validation links alone; an option that is given "
        "has that value in all trials.",
    ),
    "models": CommandEntry(
        "vgae.cli.models",
        "Score every part of a model on ten splits of each dataset; may be interrupted like reproduce.",
    ),
    "accuracy": CommandEntry(
        "vgae.cli.accuracy",
        "Score models, presets, the stack and baselines by several protocols; may be interrupted like reproduce.",
    ),
    "report": CommandEntry(
        "vgae.cli.paper",
        "Write a page about reproductions of the paper, the scores of models or accuracy, in Markdown.",
    ),
    "plan": CommandEntry(
        "vgae.cli.plan",
        "Estimate time and memory of a training on this machine, before it is run.",
        "--model stack has options of its own: vgae plan --model stack --help.",
    ),
    "parts": CommandEntry(
        "vgae.cli.parts", "List the parts that a model can be made of: equations, options, and what goes together."
    ),
    "datasets": CommandEntry("vgae.cli.datasets", "List the datasets that train knows by name."),
}

STACK = "stack"
BY_MODEL = {  # what a command is for the models that have options of their own
    "train": {
        STACK: CommandEntry(
            "vgae.cli.stack",
            "Train a stack: many models and similarities, and how far to trust each of them, learned by cross-fitting.",
        )
    },
    "plan": {STACK: CommandEntry("vgae.cli.stack", "Estimate time and memory of a stack on this machine.")},
}

FOR_MANY = ("train",)  # what a group of processes can do together
WORD_OF_FIRST = 3.0  # seconds that others wait before they fail, so that the first process can say why
OWN = "own"
INSTALL, SHOW = "--install-completion", "--show-completion"
# Options that may be named without a value, and what that means.
BARE = {"--labels": OWN, INSTALL: OWN_SHELL, SHOW: OWN_SHELL}

WAITING = ("vgae.ops.numba_tools",)  # loggers that explain to somebody at a terminal what takes so long


class LazyGroup(TyperGroup):
    """Commands that have a name and a help, and are loaded when they are called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of the table."""
        del ctx
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first argument names, with its options, and the other arguments."""
        del ctx
        name, *rest = args
        if name not in COMMANDS:
            near = get_close_matches(name, COMMANDS, n=1)
            hint = f"did you mean {near[0]}? vgae --help lists all" if near else "vgae --help lists them"
            raise InputError(f"There is no command called {name!r}; {hint}.")
        return name, load_command(name) if name not in BY_MODEL else load_for_model(name, rest), rest


app = typer.Typer(
    name="vgae",
    cls=LazyGroup,
    help="Graph auto-encoders: node embeddings and link prediction. With --debug, an error shows its traceback.",
    **SETTINGS,
)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
    install_completion: Annotated[
        str | None,
        typer.Option(INSTALL, metavar="[SHELL]", help=f"Have your shell complete commands: {', '.join(SHELLS)}."),
    ] = None,
    show_completion: Annotated[
        str | None, typer.Option(SHOW, metavar="[SHELL]", help="Print what the shell would run for that.")
    ] = None,
) -> None:
    if version:
        print_line(__version__)
    elif install_completion is not None:
        _install(named_shell(install_completion, INSTALL))
    elif show_completion is not None:
        write(f"{script(named_shell(show_completion, SHOW))}\n")
    else:
        return
    raise typer.Exit


def _install(shell: str) -> None:
    for path in install(shell):
        print_line(f"{path}: written")
    print_line(f"A {shell} that is opened from now on completes the commands of vgae, their options and values.")


def _not_loaded() -> None:
    """What stands for a command in the list of commands."""


for _name, _entry in COMMANDS.items():
    app.command(_name, help=_entry.help, short_help=_entry.help)(_not_loaded)


def load_command(name: str, model: str | None = None) -> Any:
    """A command with its options, as typer and click know it; of a model with options of its own, if it is named."""
    entry = COMMANDS[name] if model is None else BY_MODEL[name][model]
    single = typer.Typer(**SETTINGS)
    with loading():
        options = import_module("vgae.cli.options")
        function = getattr(import_module(entry.module), name)
        single.command(name, cls=BothSpellings, help=entry.help, epilog=entry.epilog)(options.with_options(function))
        return typer.main.get_command(single)


def load_for_model(name: str, arguments: list[str]) -> Any:
    """The command for the model that the arguments name; an option that only another model has is refused."""
    model, others = given_model(arguments), BY_MODEL[name]
    if model is not None and model not in others:
        known = (*import_module("vgae.train.presets").PRESETS, *others)
        if model not in known:
            raise InputError(f"model: {model!r} is not one of {', '.join(known)}.")
    own = model if model in others else None
    command = load_command(name, own)
    flags = [argument.partition("=")[0] for argument in arguments if argument.startswith("--")]
    foreign = [flag for flag in flags if flag not in _flags(command)]
    if foreign and own is not None and foreign[0] in _flags(load_command(name)):
        raise InputError(
            f"{foreign[0]}: this option is not for --model {own}; options of a single auto-encoder are written in "
            "--bases, such as gae(latent_dim=64)."
        )
    if foreign and own is None:
        for other in others:
            if foreign[0] in _flags(load_command(name, other)):
                raise InputError(f"{foreign[0]}: this option is for --model {other}; add that, or leave it out.")
    return command


def given_model(arguments: list[str]) -> str | None:
    """The value of --model, which stands last where it is given twice."""
    found = None
    for argument, after in zip(arguments, [*arguments[1:], None], strict=True):
        if argument == "--model":
            found = after
        elif argument.startswith("--model="):
            found = argument.partition("=")[2]
    return found


def _flags(command: Any) -> set[str]:
    flags = [flag for each in command.params for flag in (*each.opts, *each.secondary_opts)]
    return {*in_both_spellings(flags), "--help"}


def with_values(arguments: list[str]) -> list[str]:
    """The arguments with a value for every option that may be named without one: the next argument is none of it."""
    following = [*arguments, "-"][1:]
    return [
        f"{each}={BARE[each]}" if each in BARE and after.startswith("-") else each
        for each, after in zip(arguments, following, strict=True)
    ]


def main() -> None:
    """Run the command and, unless all went well, end the process with its exit code."""
    prepare_streams()
    debug = "--debug" in sys.argv[1:]  # anywhere: it is about the process, not about a command
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"] or ["--help"]
    if not speaks() and not debug:
        silence()
    with noting("vgae.io.datasets", *(WAITING if sys.stderr.isatty() else ())):
        code = exit_code_of(partial(_run, arguments), debug=debug)
    if code and not speaks():
        time.sleep(WORD_OF_FIRST)
    if code == INTERRUPTED:
        os._exit(code)  # where Ctrl-C hit an import, sys.exit would end in death by SIGINT and another exit code
    if code:
        sys.exit(code)


def _require_for_many(arguments: list[str]) -> None:
    """Refuse in a group of processes what each of them would do for itself."""
    model = given_model(arguments)
    what = f"{arguments[0]} --model {model}" if model in BY_MODEL.get(arguments[0], {}) else arguments[0]
    if what not in FOR_MANY:
        raise InputError(f"{what}: this is done by one process; start it without torchrun.")


def _run(arguments: list[str]) -> int | None:
    for argument in arguments:
        if "\0" in argument:
            raise InputError(f"{argument!r}: no name of a file and no option can hold a NUL character.")
    if in_group() and os.environ[SIZE] != "1" and arguments[0] in COMMANDS:
        _require_for_many(arguments)
    code: int | None = app(with_values(arguments), prog_name="vgae", standalone_mode=False)
    return code
