"""`vgae explore`: a run as one page for a browser."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vgae.cli.opening import open_run
from vgae.cli.options import OtherGraphOptions, RunFolder
from vgae.explore.options import ExploreOptions
from vgae.screen import note

MEGABYTE = 1e6


def explore(
    run_folder: RunFolder,
    out: Annotated[Path | None, typer.Option(help="An html file.  [default: RUN/map.html]")] = None,
    *,
    page: ExploreOptions,
    other: OtherGraphOptions,
) -> None:
    """Write the page of a run."""
    path = open_run(run_folder, other).explore(out or run_folder / "map.html", **asdict(page))
    note(f"wrote {path} ({path.stat().st_size / MEGABYTE:.1f} MB); to see it, open it in a browser")
