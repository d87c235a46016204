"""What is in a page: numbers that come back as they were, text that stays text, and nothing that asks for anything."""

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import vgae
from helpers import message_of
from vgae.explore.nodes import column_of, columns_of_features, store_features
from vgae.explore.noise import noise_of
from vgae.explore.pack import KINDS, LARGEST, STEPS, Pack, directions, in_planes, rounded_factors
from vgae.explore.page import SCRIPTS, STYLES
from vgae.explore.projection import lay_out, placed_by, project
from vgae.io.tables import read_any

FOLDER = Path(vgae.__file__).parent / "explore" / "web"
TYPES = {short: np.dtype(name) for name, short in KINDS.items()}


def section(pack: Pack, name: str) -> Any:
    """A section as the page reads it."""
    content = zlib.decompress(base64.b64decode(pack.contents[name]))
    if pack.kinds[name] == "json":
        return json.loads(content)
    width = 3 if pack.kinds[name] == "i3" else TYPES[pack.kinds[name]].itemsize
    planes = np.frombuffer(content, dtype=np.uint8).reshape(width, -1).T
    if pack.kinds[name] == "i3":
        wide = np.concatenate([np.zeros_like(planes[:, :1]), planes], axis=1)
        return np.ascontiguousarray(wide).view("<i4")[:, 0] >> 8
    return np.ascontiguousarray(planes).view(TYPES[pack.kinds[name]].newbyteorder("<"))[:, 0]


# -------------------------------------------------------------------------------------------------------------- numbers


def test_numbers_come_back_as_they_were() -> None:
    pack = Pack()
    arrays: dict[str, Any] = {
        "floats": np.array([1.5, -2e-30, np.inf], dtype=np.float32),
        "halves": np.array([0.1, -7], dtype=np.float16),
        "shorts": np.array([-32768, 5], dtype=np.int16),
    }
    for name, values in arrays.items():
        pack.add(name, values)
        np.testing.assert_array_equal(section(pack, name), values)
    for most, kind in ((255, "u1"), (256, "u2"), (65535, "u2"), (65536, "u4")):
        pack.add_whole("whole", np.array([0, most]))
        assert pack.kinds["whole"] == kind
        assert section(pack, "whole").tolist() == [0, most]
    numbers = np.array([0, 1, -1, LARGEST, -LARGEST], dtype=np.int32)
    pack._store("three", "i3", in_planes(numbers, 3))
    np.testing.assert_array_equal(section(pack, "three"), numbers)


def test_texts_are_in_ascii_whatever_they_hold() -> None:
    pack = Pack()
    texts = ["</script>", "\ud800 half", "שלום", "\0\u2028"]
    pack.add_json("texts", texts)
    assert zlib.decompress(base64.b64decode(pack.contents["texts"])).isascii()
    assert section(pack, "texts") == texts


@pytest.mark.parametrize("asymmetric", [False, True])
def test_rounded_factors_give_the_same_logits(asymmetric: bool) -> None:
    generator = np.random.default_rng(0)
    scales = np.logspace(1, -6, 12)
    q = (generator.normal(size=(300, 12)) * scales @ np.linalg.qr(generator.normal(size=(12, 12)))[0]).astype(
        np.float32
    )
    k = (q @ generator.normal(size=(12, 12))).astype(np.float32) if asymmetric else None
    pack = Pack()
    step = pack.add_factors({"q": q} if k is None else {"q": q, "k": k})
    assert step == STEPS[0]
    basis = section(pack, "basis").reshape(12, 12).astype(np.float64)
    found = {
        name: (section(pack, name).reshape(12, -1).T * section(pack, f"{name}_units").astype(np.float64)) @ basis.T
        for name in (("q",) if k is None else ("q", "k"))
    }
    exact = q.astype(np.float64) @ (q if k is None else k).astype(np.float64).T
    # 24 bits are no more than float32 has: beyond a step for each term, an error of its last bits is allowed.
    bound = 12 * step + 12 * np.abs(exact).max() * 2**-22
    assert np.abs(found["q"] @ found["k" if k is not None else "q"].T - exact).max() < bound


def test_factors_take_fewer_bits_where_there_are_many() -> None:
    generator = np.random.default_rng(0)
    few, many = (generator.normal(size=(size, 64)).astype(np.float32) for size in (500, 3000))
    assert Pack().add_factors({"q": few}) == STEPS[0]
    assert Pack().add_factors({"q": many}) == STEPS[-1]
    numbers, units = rounded_factors({"q": many}, "q", 1e-12)
    assert np.abs(numbers).max() <= LARGEST
    np.testing.assert_allclose(numbers.T * units, many, atol=np.abs(many).max() / LARGEST)


def test_directions_are_orthogonal_and_the_first_extends_farthest() -> None:
    points = (np.random.default_rng(0).normal(size=(200, 5)) * [1, 9, 1, 1, 3]).astype(np.float32)
    found = directions([points])
    np.testing.assert_allclose(found.T @ found, np.eye(5), atol=1e-6)
    lengths = np.linalg.norm(points @ found, axis=0)
    assert (np.diff(lengths) < 0).all()
    assert abs(found[1, 0]) > 0.99


# -------------------------------------------------------------------------------------------------------------- the map


def test_the_map_is_that_of_the_pictures() -> None:
    embedding = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    for method in ("tsne", "pca"):
        np.testing.assert_array_equal(lay_out(embedding, method, 3).points, project(embedding, method, 3))
    assert lay_out(embedding, "tsne").words == "t-SNE of the embeddings."
    assert lay_out(embedding[:2], "tsne").points.shape == (2, 2)
    np.testing.assert_array_equal(lay_out(embedding[:, :2], "tsne").points, embedding[:, :2])


def test_nodes_beside_a_sample_are_placed_by_those_that_are_like_them() -> None:
    generator = np.random.default_rng(0)
    centres = np.array([[0, 0, 0], [50, 0, 0], [0, 50, 0]])
    group = np.repeat([0, 1, 2], 100)
    embedding = (centres[group] + generator.normal(size=(300, 3))).astype(np.float32)
    laid_out = lay_out(embedding, "tsne", sample=120)
    assert "sample of 120 nodes" in laid_out.words
    middles = np.array([laid_out.points[group == each].mean(axis=0) for each in range(3)])
    nearest = np.linalg.norm(laid_out.points[:, None] - middles, axis=2).argmin(axis=1)
    np.testing.assert_array_equal(nearest, group)
    chosen = np.arange(0, 300, 3)
    points = generator.normal(size=(100, 2))
    everywhere = placed_by(embedding, chosen, points)
    np.testing.assert_array_equal(everywhere[chosen], points)
    assert (everywhere.min(axis=0) >= points.min(axis=0)).all()  # between those of the sample, never beyond
    assert (everywhere.max(axis=0) <= points.max(axis=0)).all()


# ------------------------------------------------------------------------------------------------------------ the nodes


def test_columns_are_numbers_or_texts() -> None:
    assert column_of("age", [1, 2, 3], 3).texts is None
    assert column_of("age", [1.5, np.nan, 3], 3).described()["kind"] == "number"
    town = column_of("town", ["Rome", None, "Bern"], 3)
    assert (town.texts, town.values.tolist()) == (("Bern", "Rome"), [1, -1, 0])
    labels = column_of("label", [10, 9, -1], 3, role="label")
    assert (labels.texts, labels.values.tolist()) == (("9", "10"), [1, 0, -1])
    many = column_of("name", [f"name {i}" for i in range(300)], 300)
    assert many.described()["kind"] == "text"
    assert "a value for each of the 3 nodes" in message_of(lambda: column_of("age", [1], 3))


def test_the_columns_of_a_table_are_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("a,b\nx,y\ny,z\nz,w\nw,x\n")
    (tmp_path / "nodes.csv").write_text(
        "id,age,town,ill\nx,10,Rome,true\ny,30,Bern,false\nz,20,Rome,false\nw,40,Bern,true\n"
    )
    reading = read_any(tmp_path / "links.csv", features=tmp_path / "nodes.csv", standardise=True)
    age, town, ill = columns_of_features(reading.graph, reading.recipe)
    order = list(reading.graph.ids)
    np.testing.assert_allclose([age.values[order.index(name)] for name in "xyzw"], [10, 30, 20, 40], rtol=1e-6)
    assert [town.texts[town.values[order.index(name)]] for name in "xyzw"] == ["Rome", "Bern", "Rome", "Bern"]  # type: ignore[index]
    assert (age.name, town.name, ill.name) == ("age", "town", "ill")


def test_features_are_listed_by_what_they_add_to_a_cosine() -> None:
    graph = vgae.stochastic_block_model(80, 4, feature_dim=30, seed=0)
    pack = Pack()
    assert store_features(pack, graph, None) == {"constant": 1.0, "complete": True, "num": 30}
    counts, columns = section(pack, "feature_counts"), section(pack, "feature_columns")
    weights, norms = section(pack, "feature_weights"), section(pack, "feature_norms")
    assert counts.sum() == graph.features.nnz  # type: ignore[union-attr]
    for node, row in enumerate(np.split(columns, np.cumsum(counts)[:-1])):
        assert (np.diff(weights[row]) <= 0).all()
        assert norms[node] == pytest.approx(np.linalg.norm(weights[row]), rel=1e-5)


def test_only_a_posterior_has_a_spread() -> None:
    graph = vgae.stochastic_block_model(60, 3, seed=0)
    gae, model = vgae.GAE(iterations=2, latent_dim=4).fit(graph), vgae.VGAE(iterations=2, latent_dim=4).fit(graph)
    assert noise_of(gae.model_.posterior.build(gae.latent_), gae.model_.decoder) is None
    noise = noise_of(model.model_.posterior.build(model.latent_), model.model_.decoder)
    assert noise is not None
    codes, least, step = noise.codes()
    found = torch.from_numpy(least + step * codes.T.astype(np.float32))
    torch.testing.assert_close(found, model.latent_["log_std"], atol=step / 2 + 1e-5, rtol=0)


# ------------------------------------------------------------------------------------------------------------- the file


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    edges = [("<script>alert(1)</script>", "zebra crossing"), ("zebra crossing", "third"), ("third", "fourth")]
    model = vgae.GAE(iterations=3, latent_dim=4).fit(edges)
    path: Path = model.explore(tmp_path_factory.mktemp("page") / "map.html", projection="pca")
    return path.read_text(encoding="utf-8")


class Tags(HTMLParser):
    """The tags of a page with their attributes, and the texts of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.found[-1] if self.found else ("", {})
        if tag in self.texts and "type" not in attributes:
            self.texts[tag].append(data)


def test_the_policy_allows_this_script_and_style_and_nothing_else(page: str) -> None:
    tags = Tags(page)
    policy = next(held["content"] for tag, held in tags.found if held.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.split(" ", 1) for rule in (policy or "").split("; "))
    for name in ("script", "style"):
        texts = [text for text in tags.texts[name] if text.strip()]
        assert len(texts) == 1
        digest = base64.b64encode(hashlib.sha256(texts[0].encode()).digest()).decode()
        assert rules[f"{name}-src"] == f"'sha256-{digest}'"
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"


def test_nothing_in_the_page_points_outside_or_holds_text_of_strangers(page: str) -> None:
    tags = Tags(page)
    assert not [held for _, held in tags.found if {"src", "srcset", "action", "data", "style"} & set(held)]
    assert [held["href"] for _, held in tags.found if "href" in held] == ["#panel"]
    assert not [held for _, held in tags.found if any(name.startswith("on") for name in held)]
    script = "".join(tags.texts["script"])
    assert set(re.findall(r"https?://[^'\"]*", script)) == {
        "http://www.w3.org/2000/svg"
    }  # a name, which nobody fetches
    assert not re.findall(
        r"\b(fetch|XMLHttpRequest|WebSocket|importScripts|eval|innerHTML|insertAdjacentHTML)\b", script
    )
    assert "url(" not in "".join(tags.texts["style"])
    assert "zebra" not in page
    assert "alert(1)" not in page


def test_every_file_of_the_page_is_used_and_short() -> None:
    found = {path.name for path in FOLDER.iterdir() if path.suffix in (".js", ".css")}
    assert found == {*SCRIPTS, *STYLES}
    for path in FOLDER.iterdir():
        assert len(path.read_text(encoding="utf-8").splitlines()) < 400


# ------------------------------------------------------------------------------------------------------------ the looks


def luminance(rgb: Any) -> Any:
    linear = np.where(np.asarray(rgb) <= 0.04045, np.asarray(rgb) / 12.92, ((np.asarray(rgb) + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def rgb(text: str) -> Any:
    return np.array([int(text[at : at + 2], 16) for at in (1, 3, 5)]) / 255


def test_text_can_be_read_in_both_themes() -> None:
    blocks = re.findall(r"--paper: .*?color-scheme", (FOLDER / "theme.css").read_text(), flags=re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        colours = dict(re.findall(r"--([\w-]+): (#\w{6})", block))
        for ink in ("ink", "soft", "accent", "predicted", "known", "held"):
            for ground in ("paper", "card", "raised"):
                bright, dark = sorted((luminance(rgb(colours[ink])), luminance(rgb(colours[ground]))), reverse=True)
                assert (bright + 0.05) / (dark + 0.05) >= (3.8 if ground == "raised" else 4.5), (ink, ground)


# What people with a missing kind of cone see (Machado, Oliveira and Fernandes, 2009), in linear light.
BLINDNESS = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


def lab(colours: Any) -> Any:
    """CIE L*a*b* of linear colours."""
    xyz = np.clip(colours, 0, 1) @ np.array(
        [[0.4124, 0.2126, 0.0193], [0.3576, 0.7152, 0.1192], [0.1805, 0.0722, 0.9505]]
    )
    x, y, z = np.cbrt(xyz / [0.9505, 1, 1.089]).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("blindness", BLINDNESS)
def test_classes_stay_apart_for_the_colour_blind(theme: str, blindness: str) -> None:
    line = re.search(rf"  {theme}: \[('#.*)\],", (FOLDER / "colours.js").read_text())
    assert line is not None
    hues = np.array([rgb(text.strip(" '")) for text in line[1].split(",")])
    linear = np.where(hues <= 0.04045, hues / 12.92, ((hues + 0.055) / 1.055) ** 2.4)
    seen = lab(linear @ np.array(BLINDNESS[blindness]).T)
    apart = np.linalg.norm(seen[:, None] - seen, axis=2)
    assert len(hues) == 8
    assert apart[np.triu_indices(8, 1)].min() > (
        10 if blindness == "tritanopia" else 12
    )  # five times what can just be told apart
