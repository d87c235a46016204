"""A configuration in a file of its own, as `vgae tune` writes it and `vgae train --config` takes it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from vgae.errors import InputError
from vgae.io.json_files import read_json, write_json
from vgae.options import options_of
from vgae.train.config import Config
from vgae.version import __version__
from vgae.words import shown

FORMAT = 1


def write_config(path: Path, config: Config, **remarks: Any) -> None:
    """Every option by which trainings differ, under `options`; remarks are for people, and not read."""
    values = config.to_json()
    options = {each.name: values[each.name] for each in options_of(Config) if each.rule.identifies}
    write_json(path, {"format": FORMAT, "vgae": __version__} | remarks | {"options": options})


def read_config(path: Path) -> dict[str, Any]:
    """The options in a file, checked one by one and together; a part that is the model's own is None."""
    content = read_json(path)
    options = content.get("options")
    if "format" not in content or not isinstance(options, dict):
        raise InputError(
            f"{path}: not a configuration, which has a format and options; take the best.json that vgae tune writes."
        )
    if content["format"] != FORMAT or isinstance(content["format"], bool):
        raise InputError(
            f"{path}: this configuration has the format {shown(content['format'])}, written by vgae "
            f"{shown(content.get('vgae'))}, and vgae {__version__} reads the format {FORMAT}; make it again."
        )
    known = {each.name for each in options_of(Config)}
    unknown = sorted(set(options) - known)
    if unknown:
        raise InputError(f"{path}: the option {shown(unknown[0])} is not known to vgae {__version__}; remove it.")
    try:
        config = Config(**options)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return {name: getattr(config, name) for name in options}


def with_config_file(config: Config, path: Path, given: Collection[str]) -> Config:
    """A configuration with the values of a file where an option was not given."""
    values = {name: value for name, value in read_config(path).items() if name not in given}
    try:
        return replace(config, **values)
    except InputError as error:  # what was given and what the file has cannot go together
        raise InputError(f"{path}: {error}") from None
