"""The folder of a search: what is searched (search.json), the journal of its trials, and what came out of it.

search.json is written first and never changed: a search is resumed only if it is the same. The journal grows line by
line, each flushed to the disk, so that a search that was killed continues after its last line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vgae.errors import InputError
from vgae.io.json_files import finite, read_json, write_json
from vgae.runs.config_file import write_config
from vgae.runs.lock import locked
from vgae.search.result import SearchResult
from vgae.search.space import Space
from vgae.search.study import Rules
from vgae.search.trial import Material
from vgae.version import __version__

FORMAT = 1
ABOUT, JOURNAL, TRIALS, BEST, LOCK = "search.json", "trials.journal", "trials.csv", "best.json", "vgae.lock"
FINALS = "finals.json"
PICTURES = ("history.png", "importance.png")
OWN = (ABOUT, JOURNAL, FINALS, TRIALS, BEST, LOCK, *PICTURES)
COMPARED = ("format", "graph", "validation", "by", "seed", "presets", "space")  # of which each makes another search


@dataclass(frozen=True)
class SearchFolder:
    """Where a search is stored, and what may become of what is there already."""

    path: Path
    overwrite: bool = False
    resume: bool = False

    @contextmanager
    def opened(self, material: Material, space: Space, rules: Rules) -> Iterator[Path]:
        """The journal to write to, while nobody else may."""
        about = _about(material, space, rules)
        self.require_usable()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.path}: the folder cannot be made ({error.strerror}); choose another.") from None
        with locked(self.path / LOCK, f"{self.path}: another process is searching into this folder; choose another."):
            self.require_usable()
            if self.overwrite:
                self._clear()
            if self.has_search:
                self._require_same(about)
            else:
                write_json(self.path / ABOUT, about, durable=True)
            yield self.path / JOURNAL

    def require_usable(self) -> None:
        """A new or empty folder always passes; one with a search if resuming or overwriting was asked for."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise InputError(f"{self.path}: this is a file, not a folder; choose another name.")
        if self.has_search:
            if not (self.overwrite or self.resume):
                raise InputError(
                    f"{self.path}: a search is there already; --resume to continue it, --overwrite to begin again, or "
                    "choose another folder."
                )
        elif any(each.name != LOCK for each in self.path.iterdir()):
            raise InputError(f"{self.path}: this folder is used for something else; choose another.")

    @property
    def has_search(self) -> bool:
        """Whether there is a search, which can be resumed."""
        return (self.path / ABOUT).exists()

    @property
    def stored(self) -> int:
        """How many trials the table of a search has that was interrupted."""
        try:
            return max(len((self.path / TRIALS).read_text(encoding="utf-8").splitlines()) - 1, 0)
        except FileNotFoundError:
            return 0

    def write(self, result: SearchResult) -> None:
        """What came out: all trials and, as soon as one has a score, the best configuration."""
        result.write_trials(self.path / TRIALS)
        if result.ranked():
            best = result.best
            write_config(self.path / BEST, best.config, trial=best.number, validation=best.metrics)

    def _clear(self) -> None:
        """Remove what a search writes, search.json last, and nothing else."""
        for name in reversed(OWN):
            if name != LOCK:
                (self.path / name).unlink(missing_ok=True)

    def _require_same(self, about: dict[str, Any]) -> None:
        found = read_json(self.path / ABOUT)
        changed = [name for name in COMPARED if found.get(name) != about[name]]
        if changed:
            raise InputError(
                f"{self.path}: the search there is another one (different: {', '.join(changed)}); "
                "--overwrite to begin again, or choose another folder."
            )


def _about(material: Material, space: Space, rules: Rules) -> dict[str, Any]:
    """What a search is, for search.json."""
    digest = hashlib.sha256()
    for pairs in (material.split.val.links, material.split.val.non_links):
        digest.update(pairs.astype("<i8").tobytes())
    about: dict[str, Any] = finite(
        {
            "format": FORMAT,
            "vgae": __version__,
            "graph": material.split.train.content_hash,
            "validation": digest.hexdigest(),
            "by": rules.by,
            "seed": rules.seed,
            "presets": list(rules.presets),
            "space": space.to_json(),
        }
    )
    return about
