"""What tells one training from another: a checkpoint is of no use to any but its own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from vgae.errors import InputError
from vgae.runs.checks import check_keys
from vgae.train.config import Config
from vgae.train.job import Job


@dataclass(frozen=True)
class Fingerprint:
    """The configuration of a training, the hashes of what it learns from, and its kind of device."""

    config: Config
    graph_hash: str
    validation_hash: str
    device: str

    @classmethod
    def of(cls, job: Job) -> Fingerprint:
        """That of a training to be made."""
        pairs = hashlib.sha256()
        for part in (job.validation.links, job.validation.non_links) if job.validation else ():
            pairs.update(f"{len(part)}".encode() + part.astype("<i8").tobytes())
        return cls(job.config, job.graph.content_hash, pairs.hexdigest(), job.device.type)

    def to_json(self) -> dict[str, Any]:
        """As checkpoint.json has it."""
        return {**vars(self), "config": self.config.to_json()}

    @classmethod
    def from_json(cls, values: dict[str, Any], objective: str) -> Fingerprint:
        """The inverse of `to_json`, of a training with this objective."""
        check_keys(values, (field.name for field in fields(cls)), "owner")
        return cls(**{**values, "config": Config.from_json(values["config"], trained_with=objective)})

    def differences(self, other: Fingerprint) -> list[str]:
        """In what this training differs from another."""
        found = list(self.config.differences(other.config))
        if self.device != other.device:
            found.append(f"device {self.device}, not {other.device}")
        if self.graph_hash != other.graph_hash:
            found.append("another training graph")
        if self.validation_hash != other.validation_hash:
            found.append("other validation pairs")
        return found

    def require_same(self, theirs: Fingerprint) -> None:
        """Refuse what belongs to another training, and say in what it differs."""
        require_no_difference(theirs.differences(self))


def require_no_difference(found: Sequence[str]) -> None:
    """Refuse a checkpoint that differs in these."""
    if found:
        raise InputError(
            f"the checkpoint there is of another training ({'; '.join(found)}); "
            "continue with the options it was started with, or --overwrite it (in Python, delete it) to start again"
        )
