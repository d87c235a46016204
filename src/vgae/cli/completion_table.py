"""The table that completion is answered from: every command with its arguments, options and what these can be.

It is written by `make completion` and lies beside this file; the suite compares it with the commands.
"""

from __future__ import annotations

import json
from inspect import unwrap
from typing import Any, get_type_hints

import typer.main

from vgae.baselines import BASELINES
from vgae.cli.app import BY_MODEL, COMMANDS, app, load_command
from vgae.cli.completion import TABLE
from vgae.model.spec import FAMILIES, is_own, registered
from vgae.options import Option, Options, options_of
from vgae.train.presets import PRESETS

ARGUMENTS = {"METHOD": (*BASELINES, "all"), "[FAMILY]": FAMILIES}  # what they can be, by their names in the help

HELP = "Show what there is"


def make_table() -> dict[str, Any]:
    """All commands, loaded one by one."""
    whole: Any = typer.main.get_command(app)  # click's, wherever typer keeps it
    return {
        "options": {flag: _first_sentence(of.help) for of in whole.params for flag in of.opts} | {"--help": HELP},
        "commands": {
            name: {
                "help": entry.help,
                **_described(name),
                "models": {model: _described(name, model) for model in BY_MODEL.get(name, {})},
            }
            for name, entry in COMMANDS.items()
        },
    }


def _described(name: str, model: str | None = None) -> dict[str, Any]:
    """Arguments and options of a command."""
    command = load_command(name, model)
    values = _values_of(unwrap(command.callback))
    if name in BY_MODEL:
        values["--model"] = [*PRESETS, *BY_MODEL[name]]
    arguments, options = [], {}
    for each in command.params:
        if each.param_type_name == "argument":
            metavar = each.metavar or each.name
            arguments.append({"name": metavar, "values": list(ARGUMENTS.get(metavar, ()))})
            continue
        for flag in (*each.opts, *each.secondary_opts):
            options[flag] = {
                "help": _first_sentence(each.help or ""),
                "takes_value": not each.is_flag,
                "values": values.get(flag, []),
            }
    options["--help"] = {"help": HELP, "takes_value": False, "values": []}
    return {"arguments": arguments, "options": options}


def _values_of(function: Any) -> dict[str, list[str]]:
    """What the options of a command's function can be, by their flags, where that is one of some words."""
    kinds = [kind for kind in get_type_hints(function).values() if isinstance(kind, type) and issubclass(kind, Options)]
    return {of.flag: _words_of(of) for kind in kinds for of in options_of(kind)}


def _words_of(of: Option) -> list[str]:
    if of.rule.choices is not None:
        return list(of.rule.choices())
    return [name for name, spec in registered(of.name).items() if is_own(spec)] if of.name in FAMILIES else []


def _first_sentence(text: str) -> str:
    """Up to the first full stop or colon, without what the default is."""
    for end in (". ", ";", ": ", "  ["):
        text = text.partition(end)[0]
    return text.strip().removesuffix(".")


def as_text(value: Any) -> str:
    """The table as it is stored: one line for each option, so that changes can be read."""
    if not isinstance(value, dict) or not any(isinstance(each, dict) for each in value.values()):
        return json.dumps(value, ensure_ascii=False)
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {as_text(each)}" for name, each in value.items()) + "\n}"


if __name__ == "__main__":
    TABLE.write_text(f"{as_text(make_table())}\n", encoding="utf-8")
