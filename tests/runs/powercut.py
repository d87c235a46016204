"""A disk that remembers: what a power cut could leave of a folder, at every moment while something is written there.

Every change below a folder is recorded as it happens: new names, renames, removals, and which files and folders were
flushed. After the first n of these,

- a file has the content that was flushed; without a flush it may be empty, cut in half, or whole;
- a name, a rename or a removal lasts if its folder was flushed later; otherwise it may have happened or not, each
  independently of the others. A rename between two folders happens as a whole, and lasts if either of them was flushed.
"""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import vgae

FOLDER = -1  # in place of a file's number
Tree = dict[str, bytes | None]  # content by path, None for a folder


@dataclass(frozen=True)
class Change:
    """One entry of the record: what happened, where, and to which file."""

    kind: str  # "name", "move", "remove", "flush folder", "flush file"
    path: str
    file: int = FOLDER
    source: str = ""
    content: bytes = b""

    @property
    def folders(self) -> set[str]:
        """Whose flush makes it last."""
        return {str(Path(path).parent) for path in (self.path, self.source) if path}


@dataclass
class Disk:
    """Records what happens below a folder."""

    root: Path
    names: dict[str, int] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)  # as a running system sees them, at the end of the record
    changes: list[Change] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._look()
        self.changes += [Change("flush file", "", number, content=data) for number, data in self.contents.items()]
        folders = [path for path, number in self.names.items() if number == FOLDER]
        self.changes += [Change("flush folder", path) for path in ("", *folders)]
        self.num_before = len(self.changes)

    def _relative(self, path: Any) -> str | None:
        full = Path(path).absolute()
        return str(full.relative_to(self.root)) if full.is_relative_to(self.root) else None

    def _look(self) -> None:
        """Take note of new names, and of what is in the files."""
        for path in sorted(self.root.rglob("*")):
            name = str(path.relative_to(self.root))
            if name not in self.names:
                self.names[name] = FOLDER if path.is_dir() else len(self.contents)
                if self.names[name] != FOLDER:
                    self.contents[self.names[name]] = b""
                self.changes.append(Change("name", name, self.names[name]))
            if self.names[name] != FOLDER:
                self.contents[self.names[name]] = path.read_bytes()

    def _flushed(self, handle: int) -> None:
        self._look()
        name = self._relative(Path(f"/proc/self/fd/{handle}").readlink())
        if name is None:
            return
        name = "" if name == "." else name
        number = self.names.get(name, FOLDER)
        if number == FOLDER:
            self.changes.append(Change("flush folder", name))
        else:
            self.changes.append(Change("flush file", name, number, content=self.contents[number]))

    def _moved(self, source: Any, target: Any) -> None:
        self._look()
        old, new = self._relative(source), self._relative(target)
        if old is not None and new is not None:
            number = self.names.pop(old)
            self.names[new] = number
            self.changes.append(Change("move", new, number, source=old))

    def _removed(self, path: Any) -> None:
        self._look()
        name = self._relative(path)
        if name in self.names:
            self.changes.append(Change("remove", name, self.names.pop(name)))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record all changes that this process makes."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", self._flushed)
            for name, note in (
                ("replace", self._moved),
                ("rename", self._moved),
                ("unlink", self._removed),
                ("remove", self._removed),
                ("rmdir", self._removed),
            ):
                patch.setattr(os, name, _after(getattr(os, name), note, removes=name in ("unlink", "remove", "rmdir")))
            yield
        self._look()

    def after_a_power_cut(self, *, seed: int = 0, subsets: int = 1) -> Iterator[tuple[int, Tree]]:
        """All different trees that a power cut could leave, with the number of changes before it."""
        generator = random.Random(seed)  # noqa: S311 - no secret
        seen = set()
        for count in range(self.num_before, len(self.changes) + 1):
            open_changes = self._unflushed(count)
            choices = [set(), set(open_changes)]
            choices += [{place for place in open_changes if generator.random() < 0.5} for _ in range(subsets)]
            for happened in choices:
                for kept in (0.0, 0.5, 1.0):
                    tree = self._tree(count, set(open_changes) - happened, kept)
                    key = frozenset((path, data) for path, data in tree.items() if not path.endswith(".lock"))
                    if key not in seen:
                        seen.add(key)
                        yield count - self.num_before, tree

    def _unflushed(self, count: int) -> list[int]:
        """The changes to names that no flush has made to last."""
        flushed: dict[str, int] = {}
        for place, change in enumerate(self.changes[:count]):
            if change.kind == "flush folder":
                flushed[change.path] = place
        named = [
            place for place, change in enumerate(self.changes[:count]) if change.kind in ("name", "move", "remove")
        ]
        return [
            place
            for place in named
            if all(flushed.get("" if folder == "." else folder, -1) < place for folder in self.changes[place].folders)
        ]

    def _tree(self, count: int, left_out: set[int], kept: float) -> Tree:
        names: dict[str, int] = {}
        flushed: dict[int, bytes] = {}
        for place, change in enumerate(self.changes[:count]):
            if change.kind == "flush file":
                flushed[change.file] = change.content
            if place in left_out or change.kind.startswith("flush"):
                continue
            if change.kind == "name":
                names[change.path] = change.file
            elif change.kind == "move":
                names = {path: number for path, number in names.items() if path != change.source}
                names[change.path] = change.file
            else:
                names.pop(change.path, None)
        tree: Tree = {}
        for path, number in sorted(names.items()):
            if any(names.get(str(parent)) != FOLDER for parent in Path(path).parents if str(parent) != "."):
                continue  # in a folder that is not there
            whole = self.contents.get(number, b"")
            tree[path] = None if number == FOLDER else flushed.get(number, whole[: round(kept * len(whole))])
        return tree


def grow(root: Path, tree: Tree) -> None:
    """Make a tree of files."""
    for path, content in sorted(tree.items()):
        if content is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(content)


def what_is_read(run: Path) -> tuple[Any, ...]:
    """What somebody who reads a run gets, configuration and weights and scores."""
    model = vgae.load(run)
    weights = {name: tensor.numpy().tobytes() for name, tensor in model.model_.state_dict().items()}
    return model.config_, weights, model.transform().tobytes(), model.run_.metrics


def _after(do: Callable[..., Any], note: Callable[..., None], *, removes: bool) -> Callable[..., Any]:
    """The function, noted before it is called; what would fail to remove something is not noted."""

    def noted(*arguments: Any, **options: Any) -> Any:
        path = Path(arguments[0]) if removes else None
        if path is None or (os.path.lexists(path) and not (path.is_dir() and any(path.iterdir()))):
            note(*arguments)
        return do(*arguments, **options)

    return noted
