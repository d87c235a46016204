"""The code in pages of the documentation, run in the order in which it is read.

A page is Markdown. Its blocks of Python share one namespace, and its blocks of shell commands one folder, which is
empty at first. What a reader does not need to see stands in comments, which no page shows:

    <!-- setup … -->           Python that is run where it stands, mostly to write the files that the page speaks of
    <!-- not run: reason -->   before a block: it is not run, because …

Commands other than `vgae` install or start something and are not run; each must be one of `OTHER_COMMANDS`. Trainings
by the command that do not say how long they are have `ITERATIONS` steps here, so that a page takes seconds; those that
do not say where they are saved replace what is there, because lines of a block are often alternatives.
"""

import re
import shlex
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from command import run_vgae

ITERATIONS = ("--iterations", "5")
OTHER_COMMANDS = ("pip", "make", "python", ".")
PYTHON, SHELL, SETUP = "python", "sh", "setup"
_CODE = re.compile(
    r"<!-- setup\n(?P<setup>.*?)-->"
    r"|(?:<!-- not run: (?P<reason>[^\n]*?) -->\n)?^(?P<indent> *)```(?P<kind>python|sh)\n(?P<code>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """Some lines of code of a page; with a reason, they are not run."""

    kind: str
    code: str
    line: int
    reason: str | None = None


def blocks_of(page: Path) -> Iterator[Block]:
    """The code of a page, in its order."""
    text = page.read_text()
    for found in _CODE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        if found["setup"] is not None:
            yield Block(SETUP, found["setup"], line)
        else:
            indented = re.compile(f"^{found['indent']}", re.MULTILINE)
            yield Block(found["kind"], indented.sub("", found["code"]), line, found["reason"])


def commands_in(code: str) -> Iterator[list[str]]:
    """The commands of a block, as lists of arguments, without comments; a line may be continued."""
    for line in code.replace("\\\n", " ").splitlines():
        arguments = shlex.split(line, comments=True)
        if arguments:
            yield arguments


def run_page(page: Path, folder: Path) -> None:
    """Run the code of a page in a folder; the first block that fails is named by its line."""
    namespace: dict[str, Any] = {"__name__": f"page_{page.stem.replace('-', '_')}"}
    for block in blocks_of(page):
        if block.reason is not None:
            continue
        if block.kind == SHELL:
            for arguments in commands_in(block.code):
                _run_command(arguments, folder, f"{page.name}, line {block.line}")
        else:
            code = compile("\n" * block.line + block.code, str(page), "exec")  # so that an error has the page's line
            with chdir(folder):
                exec(code, namespace)  # noqa: S102 - our own pages


def _run_command(arguments: list[str], folder: Path, where: str) -> None:
    name, *rest = arguments
    if name != "vgae":
        assert name in OTHER_COMMANDS, f"{where}: {name} is no command that the pages should need"
        return
    if rest[0] == "train" and "--iterations" not in rest and "stack" not in rest:
        rest += ITERATIONS
    if rest[0] == "train" and not {"--out", "--resume"} & set(rest):
        rest.append("--overwrite")
    result = run_vgae(*rest, cwd=folder)
    assert result.returncode == 0, f"{where}: {shlex.join(arguments)}\n{result.stderr}"
