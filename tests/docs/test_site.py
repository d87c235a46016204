"""The pages that are made from the code tell all of it, and the site is built from them without a warning."""

import subprocess
import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import vgae
from vgae.cli.app import BY_MODEL, COMMANDS, load_command
from vgae.model.spec import FAMILIES, is_own, registered
from vgae.options import options_of
from vgae.train.config import Config
from vgae_site import flowchart, generated_pages
from vgae_site.project import project_pages

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {path: content for path, content in generated_pages().items() if isinstance(content, str)}


def test_every_public_name_has_a_page_with_its_signature_and_example(pages: dict[str, str]) -> None:
    for name in vgae.__all__:
        if name != "__version__":
            page = pages[f"reference/api/{name}.md"]
            assert f"vgae.{name}" in page
            assert ">>> " in page


@pytest.mark.parametrize("name", ["GAE", "VGAE"])
def test_the_page_of_an_estimator_has_every_parameter_with_its_check_and_help(pages: dict[str, str], name: str) -> None:
    plain = pages[f"reference/api/{name}.md"].replace("\\", "")
    rows = [line for line in plain.splitlines() if line.startswith("| `")]
    for option in options_of(Config):
        if option.name != "model":
            (row,) = (line for line in rows if line.startswith(f"| `{option.name}` |"))
            assert option.rule.help.split("  [default")[0] in row
            if option.rule.choices is not None:
                assert all(f"`{choice}`" in row for choice in option.rule.choices())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_a_command_has_every_option_with_its_help(pages: dict[str, str], name: str) -> None:
    for model in (None, *BY_MODEL.get(name, {})):
        page = pages[f"reference/commands/{name if model is None else f'{name}-{model}'}.md"]
        plain = page.replace("\\", "")
        for each in load_command(name, model).params:
            if each.param_type_name == "option" and "--help" not in each.opts:
                assert f":::{{option}} {', '.join((*each.opts, *each.secondary_opts))}" in page
            assert (each.help or "").split("  [default")[0] in plain
        assert COMMANDS[name].help in plain or model is not None


def test_the_page_of_a_family_has_every_part_and_every_option(pages: dict[str, str]) -> None:
    for family in FAMILIES:
        page = pages[f"reference/parts/{family}.md"]
        for name, spec in registered(family).items():
            if is_own(spec):
                assert f"\n## {name}\n" in page
                for option in options_of(spec):
                    assert f"| `{option.name}` |" in page


def test_every_notebook_has_a_page(pages: dict[str, str]) -> None:
    for path in (ROOT / "examples").glob("*.ipynb"):
        assert pages[f"examples/{path.stem}.md"].startswith("# ")


def test_links_between_files_of_the_project_lead_to_pages(tmp_path: Path) -> None:
    (tmp_path / "CONTRIBUTING.md").write_text("[one](docs/parts.md#presets) [two](CHANGELOG.md) [three](src/a.py)")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog")
    assert project_pages(tmp_path)["project/contributing.md"] == "[one](../parts.md#presets) [two](changelog.md) three"


# ---------------------------------------------------------------------------------------------------------- flow charts


def test_a_flow_chart_has_its_boxes_below_what_leads_to_them_and_none_overlap() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text().split("```mermaid\n")[1].split("```")[0]
    chart = flowchart.parse(text)
    boxes, paths = flowchart.laid_out(chart)
    assert len(boxes) == len(chart.boxes) > 10
    for path, _ in paths:
        assert all(above.y < below.y for above, below in pairwise(path))
    for place, one in enumerate(boxes):
        for other in boxes[place + 1 :]:
            apart = abs(one.x - other.x) >= (one.width + other.width) / 2
            assert apart or abs(one.y - other.y) >= (one.height + other.height) / 2, (one.name, other.name)


def test_what_is_no_flow_chart_is_an_error() -> None:
    for text in ("pie", "flowchart TD\n  a -->", 'flowchart TD\n  a["x" --> b'):
        with pytest.raises(ValueError, match=r"chart|node"):
            flowchart.parse(text)


# ------------------------------------------------------------------------------------------------------------- the site


class Links(HTMLParser):
    """What a page asks a browser to load, where its links lead, and which places it has."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.places: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.leads.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("index", "search", "next", "prev", "canonical", "genindex"):
            self.loads.append(given.get("href", ""))
        elif "src" in given:
            self.loads.append(given["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--nitpicky", "-d", str(folder / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, str(ROOT / "docs"), str(folder / "site")]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert result.returncode == 0, result.stderr
    return folder / "site"


def test_no_page_loads_anything_from_elsewhere_and_every_link_within_leads_somewhere(site: Path) -> None:
    found = {path: Links(path) for path in site.rglob("*.html")}
    assert len(found) > 60
    for path, links in found.items():
        for url in links.loads:
            parts = urlsplit(url)
            assert parts.scheme in ("", "data"), f"{path.name} loads {url}"
            assert not parts.path or parts.scheme or (path.parent / unquote(parts.path)).exists(), (path.name, url)
        for url in links.leads:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), f"{path.name} leads to {url}"
            if parts.fragment and target.suffix == ".html":
                assert unquote(parts.fragment) in found[target].places, f"{path.name} leads to {url}"
    for style in site.rglob("*.css"):
        assert "url(http" not in style.read_text(), style
