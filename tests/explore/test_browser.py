"""The page of a model in a real browser: what it computes, what it does when it is used, and that nothing is run."""

import csv
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

import vgae
from explore_browser import HOSTILE, Opened, browser, fitted


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def model() -> Any:
    return fitted()


@pytest.fixture(scope="module")
def path(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = model.explore(
        tmp_path_factory.mktemp("page") / "map.html",
        projection="pca",
        top=40,
        attributes={"age": np.arange(160.0), HOSTILE[2]: [HOSTILE[1]] * 160},
    )
    return made


@pytest.fixture
def opened(chromium: Any, path: Path) -> Iterator[Opened]:
    """The page; whatever a test does with it, it asks for nothing and complains about nothing."""
    found = Opened(chromium, path)
    yield found
    found.page.wait_for_timeout(30)
    requests, complaints, title = found.requests, found.complaints, found.page.title()
    found.context.close()
    assert requests == [path.as_uri()]
    assert complaints == []
    assert title == "A graph · vgae explorer"


def check_scores(found: Opened, model: Any, nodes: list[int], direction: str = "out") -> None:
    """Logits, probabilities and the ten best new links of these nodes are Python's."""
    num_nodes = model.graph_.num_nodes
    pairs = np.random.default_rng(0).integers(num_nodes, size=(300, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    computed = found.ask(
        "pairs => pairs.map(([i, j]) => [vgae.logit(i, j), vgae.probability(i, j), vgae.known(i, j)])", pairs.tolist()
    )
    wanted = model.predict_links(pairs)
    np.testing.assert_allclose([row[0] for row in computed], wanted.logits, atol=1e-4)
    np.testing.assert_allclose([row[1] for row in computed], wanted.probabilities, atol=1e-4)
    assert [row[2] for row in computed] == wanted.known.tolist()
    ask = "([nodes, direction]) => nodes.map(i => vgae.predict(i, {most: 10, direction}).map(each => each.node))"
    best = model.recommend(10, nodes).pairs
    assert found.ask(ask, [nodes, direction]) == [best[best[:, 0] == node, 1].tolist() for node in nodes]


def test_what_it_computes_is_what_python_computes(opened: Opened, model: Any) -> None:
    check_scores(opened, model, list(range(0, 160, 3)))
    listed = opened.ask("[...document.querySelectorAll('#view-new tbody tr')].map(row => row.children[2].innerText)")
    assert len(listed) == 40


def test_cora_ranks_as_python_ranks(chromium: Any, tmp_path: Path) -> None:
    split = vgae.split_links(vgae.load_dataset("cora"), val=0.05, test=0.1, seed=0)
    cora = vgae.VGAE(iterations=100, seed=0).fit(split.train, validation=split.val)
    page = cora.explore(tmp_path / "cora.html", projection="pca")
    assert page.stat().st_size < 2_000_000
    found = Opened(chromium, page)
    check_scores(found, cora, np.random.default_rng(1).choice(2708, size=50, replace=False).tolist())
    assert found.requests == [page.as_uri()]
    found.context.close()


@pytest.mark.parametrize(
    ("decoder", "posterior"),
    [
        ("inner_product", "normal"),
        ("scaled:node_bias=true", "normal"),
        ("bilinear", "normal"),
        ("bilinear:form=full", "normal"),
        ("distance", "normal"),
        ("scaled", "power_spherical"),
        ("distance", "power_spherical"),
    ],
)
def test_the_spread_is_that_of_draws(chromium: Any, tmp_path: Path, decoder: str, posterior: str) -> None:
    model = fitted(decoder=decoder, posterior=posterior, iterations=25)
    found = Opened(chromium, model.explore(tmp_path / "map.html", projection="pca"))
    check_scores(found, model, [0, 50, 100])
    pairs = np.concatenate([model.recommend(20).pairs, model.graph_.edges[:20]])
    drawn = model.predict_links(pairs, samples=3000, seed=0)
    computed = np.array(
        found.ask(
            "pairs => pairs.map(([i, j]) => { const s = vgae.spread(i, j); return [s.mean, s.std]; })", pairs.tolist()
        )
    )
    found.context.close()
    # A normal logit stands for one that is nearly normal, and σ is rounded: within a tenth of the spread, or so.
    np.testing.assert_allclose(computed[:, 0], drawn.probabilities, atol=0.15 * float(drawn.std.max()) + 0.002)
    np.testing.assert_allclose(computed[:, 1], drawn.std, atol=0.15 * float(drawn.std.max()) + 0.002)


def test_a_directed_model_predicts_both_ways(chromium: Any, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    graph = vgae.Graph.from_edges(generator.integers(60, size=(300, 2)), num_nodes=60, directed=True)
    split = vgae.split_links(graph, val=0.1, test=0.1, seed=0)
    model = vgae.GAE(encoder="directed", decoder="source_target", iterations=40, latent_dim=8, seed=0)
    model.fit(split.train, validation=split.val)
    found = Opened(chromium, model.explore(tmp_path / "map.html", projection="pca"))
    check_scores(found, model, [0, 10, 20])
    found.ask("vgae.choose(3)")
    found.page.click("text=← Incoming")
    incoming = found.ask("vgae.predict(3, {most: 60, direction: 'in'}).map(each => [each.node, each.logit])")
    logits = model.logits([(node, 3) for node, _ in incoming])
    np.testing.assert_allclose([logit for _, logit in incoming], logits, atol=1e-4)
    assert np.all(np.diff(logits) <= 1e-4)
    assert found.ask("vgae.spread(0, 1)") is None  # a GAE has no posterior to speak of
    found.page.click("#predicted .open")
    assert "From B to A" in found.text("#view-pair")
    assert found.ask("vgae.hovered()") is None  # the row that the pointer was on is not there any more
    arcs = {tuple(arc) for arc in model.graph_.arcs.tolist()}
    i, j = max(itertools.permutations(range(12), 2), key=lambda pair: model.explain(*pair).pair.num_neighbours)
    found.ask("pair => vgae.pair(...pair)", [i, j])
    near = [
        (one, other) for one, other, kind in found.ask("vgae.drawn()") if kind == "train" and {one, other} != {i, j}
    ]
    assert len(near) >= 2 * model.explain(i, j).pair.num_neighbours >= 4
    assert arcs.issuperset(near)  # which way the links of common neighbours go
    assert found.complaints == []
    found.context.close()


def test_links_of_a_bipartite_graph_go_across(chromium: Any, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    rows = [(f"u{a}", f"i{b}") for a, b in generator.integers((30, 20), size=(200, 2)).tolist()]
    table = tmp_path / "links.csv"
    table.write_text("user,item\n" + "\n".join(f"{a},{b}" for a, b in rows) + "\n")
    graph = vgae.read_graph(table, bipartite=True)
    split = vgae.split_links(graph, val=0.1, test=0.1, seed=0)
    model = vgae.VGAE(iterations=20, latent_dim=4, seed=0).fit(split.train, validation=split.val)
    found = Opened(chromium, model.explore(tmp_path / "map.html", projection="pca"))
    check_scores(found, model, [0, 5, 40])
    found.context.close()


def test_the_smallest_graph_without_validation_links(chromium: Any, tmp_path: Path) -> None:
    model = vgae.VGAE(iterations=3, latent_dim=4).fit([("a", "b")])
    found = Opened(chromium, model.explore(tmp_path / "map.html"))
    assert found.ask("vgae.probability(0, 1)") == pytest.approx(float(model.predict_proba([(0, 1)])[0]), abs=1e-5)
    found.ask("vgae.choose(0)")
    assert "0 new links" in found.text("#view-node")
    found.ask("vgae.pair(0, 1)")
    assert "A known link" in found.text("#view-pair")
    found.page.click("#tab-about")
    assert "not calibrated" in found.text("#view-about")
    assert found.complaints == []
    found.context.close()


def test_search_finds_a_node_by_its_id(opened: Opened) -> None:
    page = opened.page
    page.keyboard.press("/")
    page.keyboard.type("node 77")
    assert opened.text("#found").startswith("node 77")
    page.keyboard.press("Enter")
    assert opened.ask("vgae.chosen()") == [77, None]
    assert opened.text("#view-node h2.id") == "node 77"
    assert "node 77 is chosen" in opened.text("#said")
    page.keyboard.press("Escape")
    assert opened.ask("vgae.chosen()") == [None, None]
    page.fill("#search", "nobody has this id")
    assert opened.text("#found") == "No id holds this text."


def lonely(opened: Opened) -> int:
    """The node that is farthest from any other on the map, among those that no panel covers."""
    places = np.array(opened.ask("vgae.ids.map((_, i) => vgae.screen(i))"))
    gaps = np.linalg.norm(places[:, None] - places, axis=2)
    np.fill_diagonal(gaps, np.inf)
    free = (places[:, 0] > 340) & (places[:, 0] < 950)
    return int(np.argmax(np.where(free, gaps.min(axis=1), 0)))


def test_the_pointer_shows_and_chooses_nodes(opened: Opened, model: Any) -> None:
    node, page = lonely(opened), opened.page
    page.mouse.move(*opened.at(node))
    card = opened.text("#hover")
    name = model.graph_.ids[node]
    degree = int(model.graph_.adjacency[[node]].sum())
    assert card.startswith(name[:20])
    assert f"degree\n{degree} link" in card
    assert "age" in card
    assert "features" in card
    page.mouse.click(*opened.at(node))
    assert opened.ask("vgae.chosen()") == [node, None]
    page.mouse.click(400, 860)  # an empty corner of the map
    assert opened.ask("vgae.chosen()") == [None, None]
    before = opened.at(node)
    page.mouse.move(600, 700)
    page.mouse.down()
    page.mouse.move(650, 730, steps=5)
    page.mouse.up()
    np.testing.assert_allclose(np.subtract(opened.at(node), before), (50, 30), atol=1)


def test_the_wheel_zooms_towards_the_pointer(opened: Opened) -> None:
    node = lonely(opened)
    at = opened.at(node)
    far = opened.ask("Math.hypot(vgae.screen(0)[0] - vgae.screen(9)[0], vgae.screen(0)[1] - vgae.screen(9)[1])")
    opened.page.mouse.move(*at)
    opened.page.mouse.wheel(0, -200)
    opened.page.wait_for_timeout(100)
    np.testing.assert_allclose(opened.at(node), at, atol=1)
    near = opened.ask("Math.hypot(vgae.screen(0)[0] - vgae.screen(9)[0], vgae.screen(0)[1] - vgae.screen(9)[1])")
    assert near > 1.2 * far


def test_the_threshold_decides_what_is_listed(opened: Opened, model: Any) -> None:
    opened.ask("vgae.choose(60)")
    new = model.recommend(159, [60]).probabilities
    numbers = []
    for place in ("0", "500", "1000"):
        opened.page.locator("#threshold").fill(place)
        floor = opened.ask("document.querySelector('#threshold').getAttribute('aria-valuetext')")
        shown = opened.page.locator("#predicted li").count()
        least = 0.0 if floor == "any" else float(floor.strip("<> %")) / 100
        assert abs(shown - min(60, int((new >= least * 0.98).sum()))) <= 2  # the text is rounded
        numbers.append(shown)
    assert numbers[0] >= numbers[1] >= numbers[2]
    assert numbers[0] > numbers[2]
    opened.page.click("#view-node button:text-is('Known')")
    known = int(model.graph_.adjacency[[60]].sum()) + int((model.excluded_pairs_ == 60).any(axis=1).sum())
    assert opened.page.locator("#predicted li").count() == known
    assert opened.page.locator("#predicted .badge").count() == known


def test_a_pair_has_its_reasons(opened: Opened, model: Any) -> None:
    i, j = model.recommend(1).pairs[0].tolist()
    opened.page.click("#view-new tbody tr:first-child td:nth-child(2) button")
    assert opened.ask("vgae.chosen()") == [i, j]
    why = model.explain(i, j)
    text = opened.text("#view-pair")
    assert f"{why.pair.num_neighbours} common neighbour" in text
    assert f"{why.pair.num_paths} path" in text
    assert f"{why.pair.num_features} shared feature" in text
    assert f"Cosine {why.pair.cosine:.2f}" in text
    shown = float(opened.text("#probability").split("%")[0].strip("<> "))
    assert shown == pytest.approx(100 * why.probability, rel=0.06)
    nodes = [i, j, *(model.graph_.index_of([each.node])[0] for each in why.pair.neighbours)]
    places = np.array([opened.at(int(node)) for node in nodes])  # the common neighbours are on the map as well
    assert (places > (320, 0)).all()
    assert (places < (960, 900)).all()


def saved(opened: Opened, button: str) -> list[list[str]]:
    with opened.page.expect_download() as download:
        opened.page.click(button)
    return list(csv.reader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"), newline="")))


def test_links_are_saved_as_csv(opened: Opened, model: Any) -> None:
    opened.page.click("#view-new th:nth-child(3) button")  # by probability, which is descending first
    opened.page.click("#view-new th:nth-child(3) button")
    head, *rows = saved(opened, "#save-new")
    assert head == ["source", "target", "probability", "logit", "std", "common_neighbours"]
    assert [float(row[2]) for row in rows] == sorted(float(row[2]) for row in rows)
    best = model.recommend(40)
    assert {(row[0], row[1]) for row in rows} == {tuple(pair) for pair in best.ids.tolist()}
    opened.ask("vgae.choose(5)")  # whose id a spreadsheet would run
    head, *rows = saved(opened, "#save-predicted")
    assert {row[0] for row in rows} == {"=HYPERLINK(1)"}
    opened.page.click("#tab-nodes")
    opened.page.check("#view-nodes .check input")
    assert "'=HYPERLINK(1)" in {row[0] for row in saved(opened, "#save-nodes")}


def test_the_lasso_catches_what_it_encloses(opened: Opened) -> None:
    page = opened.page
    places = np.array(opened.ask("vgae.ids.map((_, i) => vgae.screen(i))"))
    left, top, right, bottom = 400, 200, 620, 600
    page.keyboard.press("l")
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom), (left, top + 1)):
        page.mouse.move(x, y)
    page.mouse.up()
    within = (places[:, 0] > left) & (places[:, 0] < right) & (places[:, 1] > top) & (places[:, 1] < bottom)
    assert opened.ask("vgae.selected()") == np.flatnonzero(within).tolist()
    assert within.any()
    assert opened.text("#caught") == f"{within.sum()} nodes in the lasso"
    assert len(saved(opened, "#save-nodes")) == within.sum() + 1
    page.keyboard.press("Escape")
    assert opened.ask("vgae.selected()") == []


def test_hostile_ids_are_text(opened: Opened) -> None:
    page = opened.page
    before = opened.ask("document.querySelectorAll('script, img, iframe, b').length")
    for node, name in enumerate(HOSTILE):
        opened.ask("i => vgae.choose(i)", node)
        shown = opened.ask("document.querySelector('#view-node h2.id').textContent")
        assert shown.rstrip("…") == name[: len(shown.rstrip("…"))]
        assert len(shown) >= min(len(name), 250)
        page.mouse.move(*opened.at(node))
        opened.ask("([i, j]) => vgae.pair(i, j)", [node, (node + 1) % len(HOSTILE)])
        page.fill("#search", name[:30].strip())
        page.fill("#search", "")
    page.click("#tab-nodes")
    page.click("#tab-about")
    assert opened.ask("document.querySelectorAll('script, img, iframe, b').length") - before <= 2  # A and B of a pair
    assert opened.ask("vgae.ids.slice(0, 8)") == HOSTILE


def test_colours_change_with_what_is_asked_for(opened: Opened) -> None:
    options = opened.ask("[...document.querySelectorAll('#colour option')].map(option => option.textContent)")
    assert options[:3] == ["Label", "Cluster (k-means)", "age"]
    assert "Degree" in options
    pictures = set()
    for place in range(len(options)):
        opened.page.select_option("#colour", index=place)
        opened.page.wait_for_timeout(60)
        pictures.add(opened.page.screenshot(clip={"x": 500, "y": 250, "width": 300, "height": 400}))
    assert len(pictures) >= 4
    opened.page.select_option("#colour", index=0)
    assert opened.page.locator("#legend li").count() == 4
    opened.page.click("#legend li button")
    assert opened.page.locator("#legend li button[aria-pressed=true]").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_of_it_is_not_blank(chromium: Any, path: Path, scheme: Any) -> None:
    found = Opened(chromium, path, color_scheme=scheme)
    found.page.wait_for_timeout(60)
    picture = imread(io.BytesIO(found.page.screenshot()))[:, :, :3]
    paper = picture[850, 700]
    assert (paper.mean() > 0.9) == (scheme == "light")
    middle = picture[100:800, 340:940]
    drawn = np.abs(middle - paper).max(axis=2) > 0.15
    assert 0.005 < drawn.mean() < 0.6
    assert len(np.unique((middle[drawn] * 8).round(), axis=0)) > 12  # in more colours than one
    found.page.click("#theme")
    found.page.wait_for_timeout(250)
    other = imread(io.BytesIO(found.page.screenshot()))[850, 700, :3]
    assert (other.mean() > 0.9) == (scheme == "dark")
    found.context.close()


def test_it_can_be_used_without_a_pointer_and_without_sight(opened: Opened) -> None:
    page = opened.page
    page.focus("#overlay")
    page.keyboard.press("n")
    page.keyboard.press("n")
    said = opened.text("#said")
    assert "link" in said
    page.keyboard.press("Enter")
    chosen = opened.ask("vgae.chosen()")[0]
    assert chosen is not None
    page.keyboard.press("p")
    page.keyboard.press("Shift+Enter")
    assert opened.ask("vgae.chosen()")[1] not in (None, chosen)
    page.focus("#tab-pair")
    page.keyboard.press("ArrowRight")
    assert opened.ask("document.activeElement.id") == "tab-new"
    nameless = opened.ask(
        """[...document.querySelectorAll('button, input, select, [role=application]')].filter(each =>
            !(each.textContent.trim() || each.getAttribute('aria-label') || each.labels?.length)).length"""
    )
    assert nameless == 0
    page.click("#tab-nodes")
    assert page.locator("#view-nodes tbody tr").count() == 100
    page.click("[aria-label='Next page']")
    assert page.locator("#view-nodes tbody tr").count() == 60


ACTIVE = "document.activeElement"


def test_who_uses_the_keyboard_stays_where_they_were(opened: Opened) -> None:
    page = opened.page
    for control in ("#view-new th:nth-child(3) button", "#legend li:nth-child(2) button", "#legend input"):
        page.focus(control)
        page.keyboard.press("Space")
        assert opened.ask(f"selector => document.querySelector(selector) === {ACTIVE}", control), control
    page.focus("#view-new tbody tr:nth-child(2) button")
    page.keyboard.press("Enter")
    assert opened.ask(f"{ACTIVE}.id") == "view-pair"
    page.focus("[aria-label='Swap the two nodes']")
    page.keyboard.press("Enter")
    assert opened.ask(f"{ACTIVE}.getAttribute('aria-label')") == "Swap the two nodes"
    page.keyboard.press("Escape")
    assert opened.ask(f"{ACTIVE}.id") == "view-node"
    page.focus("#view-node button:text-is('All')")
    page.keyboard.press("Enter")
    assert opened.ask(f"[{ACTIVE}.textContent, {ACTIVE}.ariaPressed]") == ["All", "true"]
    page.focus("#predicted li:last-child .go")  # to another node: its name is what comes next
    page.keyboard.press("Enter")
    assert opened.ask(f"[{ACTIVE}.id, {ACTIVE}.scrollTop]") == ["view-node", 0]
    page.focus("#tab-nodes")
    page.keyboard.press("Enter")
    page.focus("[aria-label='Next page']")
    page.keyboard.press("Enter")
    assert opened.ask(f"document.querySelector('#view-nodes').contains({ACTIVE})")  # it is the last page


def test_the_map_shows_that_it_has_the_keyboard(opened: Opened) -> None:
    for _ in range(2):  # over the link that skips it
        opened.page.keyboard.press("Tab")
    assert opened.ask(f"{ACTIVE}.id") == "overlay"
    assert opened.ask(f"getComputedStyle({ACTIVE}).outlineStyle") == "solid"


def test_the_browser_refuses_whatever_would_leave_the_page(chromium: Any, path: Path) -> None:
    found = Opened(chromium, path)
    tried = """async () => {
        const answers = await Promise.allSettled([fetch('https://example.org/'), fetch('data:text/plain,x')]);
        const script = document.createElement('script');
        script.textContent = 'window.ran = true';
        document.body.append(script);
        const image = new Image();
        const failed = new Promise(resolve => {
            image.onerror = () => resolve('refused');
            image.onload = () => resolve('seen');
        });
        image.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==';
        return [answers.map(each => each.status), window.ran === undefined, await failed];
    }"""
    assert found.ask(tried) == [["rejected", "rejected"], True, "refused"]
    assert found.requests == [path.as_uri()]
    found.context.close()
