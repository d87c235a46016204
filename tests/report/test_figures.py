"""Pictures: what is drawn is what was given."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from vgae.errors import InputError
from vgae.evaluation.calibration import Calibration
from vgae.evaluation.histogram import Counter
from vgae.evaluation.metrics import auc_and_ap
from vgae.evaluation.reliability import reliability
from vgae.report.figures import (
    COLOURS,
    LINK,
    latent_space,
    project,
    ranking_curves,
    reliability_curves,
    save_figure,
    training_curves,
)
from vgae.train.state import LogEntry

POINTS = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0], [3.0, 1.0]])
LINKS = np.array([[0, 1], [2, 3]])


def test_latent_space_draws_every_node_at_its_point_in_the_colour_of_its_class() -> None:
    labels = np.array(["b", "a", "b", "a"])
    (axes,) = latent_space(POINTS, LINKS, labels).axes
    lines, *scatters = axes.collections
    np.testing.assert_array_equal(lines.get_segments(), POINTS[LINKS])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    for scatter, members in zip(scatters, ([1, 3], [0, 2]), strict=True):
        np.testing.assert_array_equal(scatter.get_offsets(), POINTS[members])
    assert not np.array_equal(scatters[0].get_facecolor(), scatters[1].get_facecolor())


def test_nodes_without_a_label_are_grey_and_named_so() -> None:
    (axes,) = latent_space(POINTS, LINKS, np.array([2, -1, 0, 2])).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["no label", "0", "2"]
    np.testing.assert_array_equal(axes.collections[1].get_offsets(), POINTS[[1]])


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_classes_may_have_any_name(tmp_path: Path, ending: str) -> None:
    names = ["half \ud800", "\x1b[31m\x0b", "$x^{$", "_hidden", "👩 שלום 日本", "", "x" * 5000, "]]>&<a\nb"]
    shown = ["half \\ud800", "\\x1b[31m\\x0b", "$x^{$", "_hidden", "👩 שלום 日本", "", "x" * 39 + "…", "]]>&<a\\nb"]
    labels, points = np.array(names, dtype=object), np.arange(16.0).reshape(8, 2)
    figure = latent_space(points, LINKS, labels)
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert sorted(texts) == sorted(shown)
    save_figure(figure, tmp_path / f"a.{ending}")
    if ending == "svg":
        assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")  # noqa: S314 - our own file


def test_without_labels_there_is_one_colour_and_no_legend() -> None:
    (axes,) = latent_space(POINTS, LINKS).axes
    assert axes.get_legend() is None
    assert len(axes.collections) == 2
    assert LINK not in COLOURS


def test_pca_view_is_pcas_and_two_dimensions_stay_as_they_are() -> None:
    embedding = np.random.default_rng(0).standard_normal((30, 5))
    np.testing.assert_allclose(project(embedding, "pca"), PCA(2).fit_transform(embedding))
    np.testing.assert_array_equal(project(embedding[:, :2], "tsne"), embedding[:, :2])


def test_tsne_view_keeps_clusters_together_and_repeats_itself() -> None:
    generator = np.random.default_rng(1)
    embedding = np.concatenate([generator.normal(centre, 0.1, size=(40, 6)) for centre in (0, 5)])
    points = project(embedding, "tsne", seed=3)
    np.testing.assert_array_equal(points, project(embedding, "tsne", seed=3))
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    nearest = np.argsort(distances, axis=1)[:, 1]
    assert ((np.arange(80) < 40) == (nearest < 40)).all()


def test_training_curves_draw_the_history() -> None:
    history = [LogEntry(step, 1 / step, 1 / step, 0.0, 0.5 + step / 100, 0.6, 1.0) for step in (1, 10, 20)]
    left, right = training_curves(history).axes
    np.testing.assert_allclose(left.lines[0].get_xydata(), np.array([[1, 1], [10, 0.1], [20, 0.05]]))
    np.testing.assert_allclose(right.lines[0].get_xydata(), [[1, 51], [10, 60], [20, 70]])
    (alone,) = training_curves([LogEntry(1, 1.0, 1.0, 0.0, None, None, 1.0)]).axes
    assert len(alone.lines) == 1


def test_area_under_the_drawn_roc_curve_is_the_auc() -> None:
    generator = np.random.default_rng(2)
    links, non_links = generator.normal(1, 1, 200), generator.normal(0, 1, 200)
    metrics = auc_and_ap(links, non_links)
    left, right = ranking_curves(links, non_links).axes
    area = np.trapezoid(left.lines[0].get_ydata(), left.lines[0].get_xdata())
    assert area == pytest.approx(metrics["auc"])
    assert f"{100 * metrics['ap']:.1f}" in right.get_title()


def test_reliability_curves_draw_the_numbers_of_reliability() -> None:
    generator = np.random.default_rng(5)
    counter = Counter(torch.device("cpu"))
    counter.add(torch.tensor(generator.normal(2, 2, 30_000), dtype=torch.float32))
    ways = {"raw": Calibration(0.0), "calibrated": Calibration(5.0)}
    links = generator.normal(6, 1, 300)
    curves = {name: reliability(way, counter.histogram(), links, 3000) for name, way in ways.items()}
    figure = reliability_curves(curves)
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["raw", "calibrated", "perfect calibration"]
    *drawn, promised = axes.lines
    assert len(drawn) == 4
    lacking = 0
    for place, curve in enumerate(curves.values()):
        low, high = curve.interval()
        some, none = (curve.found > 0) & (curve.pairs > 0), (curve.found == 0) & (curve.pairs > 0)
        points, at_most = drawn[2 * place : 2 * place + 2]
        np.testing.assert_array_equal(points.get_xydata(), np.stack([curve.promised, curve.observed], axis=1)[some])
        bars = axes.collections[place].get_segments()
        np.testing.assert_allclose([bar[:, 1] for bar in bars], np.stack([low, high], axis=1)[some])
        np.testing.assert_allclose([bar[0, 0] for bar in bars], curve.promised[some])
        np.testing.assert_array_equal(at_most.get_xydata(), np.stack([curve.promised, high], axis=1)[none])
        lacking += len(at_most.get_xdata())
    assert lacking > 0
    np.testing.assert_array_equal(promised.get_xdata(), promised.get_ydata())


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
def test_pictures_are_written_in_the_format_of_their_name(tmp_path: Path, name: str, start: bytes) -> None:
    save_figure(latent_space(POINTS, LINKS), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test_unknown_formats_and_projections_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.gif: .*\.png, \.svg, \.pdf"):
        save_figure(latent_space(POINTS, LINKS), tmp_path / "a.gif")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="tsne, pca"):
        project(np.ones((5, 5)), "umap")
