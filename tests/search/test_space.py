"""The search space: what it proposes can be trained, what plays no part is not drawn, and users can narrow it."""

from dataclasses import dataclass
from typing import Any

import pytest
from drawing import RandomTrial

import vgae
from helpers import message_of
from vgae.graph.graph import Graph
from vgae.model import spec
from vgae.model.decoders import DecoderSpec
from vgae.search.space import TO_STOP, Space, Wishes, space_for
from vgae.train.config import Config
from vgae.train.named import NAMED, with_preset
from vgae.train.presets import ENOUGH_TO_STOP

DRAWS = 200


@pytest.fixture(scope="module")
def graph() -> Graph:
    return vgae.stochastic_block_model(60, 2, feature_dim=9, seed=0)


@pytest.fixture(scope="module")
def directed(graph: Graph) -> Graph:
    return Graph.from_edges(graph.edges, num_nodes=graph.num_nodes, directed=True)


def space_of(graph: Graph, narrowed: dict[str, Any] | None = None, links: int = ENOUGH_TO_STOP, **given: Any) -> Space:
    return space_for(graph, links, Wishes(given, narrowed or {}))


def proposals(space: Space) -> list[tuple[Config, dict[str, Any]]]:
    trials = [RandomTrial(seed) for seed in range(DRAWS)]
    return [(space.propose(trial), trial.drawn) for trial in trials]


def names(found: list[tuple[Config, dict[str, Any]]], family: str) -> set[str]:
    return {config.value_of(family).name for config, _ in found}


@pytest.mark.parametrize("kind", ["undirected", "directed", "without features"])
def test_everything_that_is_proposed_composes_and_every_part_is_proposed(
    graph: Graph, directed: Graph, kind: str
) -> None:
    seen = {"undirected": graph, "directed": directed, "without features": graph.without_features()}[kind]
    space = space_of(seen)
    found = proposals(space)
    for config, drawn in found:
        config.composition.check()
        config.composition.outline(7)
        assert set(drawn) <= set(space.all_dimensions())
    assert len({config for config, _ in found}) == DRAWS
    about_directions = {"encoder": {"directed"}, "decoder": {"source_target", "gravity"}}
    for family in spec.FAMILIES:
        left_out = set() if kind == "directed" else about_directions.get(family, set())
        assert names(found, family) == set(spec.registered(family)) - left_out
    assert any("encoder__unit_rows" in drawn for _, drawn in found) == (kind == "undirected")


def test_what_plays_no_part_is_not_drawn(graph: Graph) -> None:
    for config, drawn in proposals(space_of(graph)):
        point = config.value_of("posterior").deterministic
        assert ("beta" in drawn) == ("free_bits" in drawn) == (not point)
        assert config.model == ("gae" if point else "vgae")
        assert ("hidden_dim" in drawn) == (config.value_of("encoder").name in ("gcn", "mlp"))
        assert ("encoder__hops" in drawn) == hasattr(config.value_of("encoder"), "hops")
        assert "iterations" not in drawn  # it stops early, by the validation links
        assert (config.iterations, config.early_stopping) == (TO_STOP["iterations"], TO_STOP["early_stopping"])


def test_with_few_validation_links_the_number_of_iterations_is_searched(graph: Graph) -> None:
    for space in (space_of(graph, links=ENOUGH_TO_STOP - 1), space_of(graph, early_stopping=None)):
        config, drawn = proposals(space)[0]
        assert config.iterations == drawn["iterations"]
        assert config.early_stopping is None
    assert "iterations" not in space_of(graph, iterations=30).all_dimensions()


def test_values_come_from_the_options_ranges_and_are_short(graph: Graph) -> None:
    found = proposals(space_of(graph))
    rates = [config.learning_rate for config, _ in found]
    assert 1e-3 <= min(rates) < 2e-3
    assert 5e-2 < max(rates) <= 1e-1
    assert 0.4 < sum(rate < 1e-2 for rate in rates) / DRAWS < 0.6  # by factors
    assert all(len(f"{rate:g}") <= len("0.00123") for rate in rates)
    dimensions = [config.latent_dim for config, _ in found]
    assert 8 <= min(dimensions) < 12
    assert 100 < max(dimensions) <= 128


def test_what_a_user_gives_or_narrows_is_kept_to(graph: Graph) -> None:
    narrowed = {
        "encoder": ["gcn", "normalized"],
        "latent_dim": (3, 5),
        "learning_rate": [0.1, 0.2],
        "encoder__dropout": "0..0.25",
        "decoder__scale": "2,3",
        "early_stopping": "none,7",
    }
    space = space_of(graph, narrowed, prior="vamp:components=3", beta=0.5)
    found = proposals(space)
    assert names(found, "encoder") == {"gcn", "normalized"}
    assert names(found, "posterior") == {"normal", "power_spherical"}  # no point has such a prior
    for config, drawn in found:
        assert str(config.value_of("prior")) == "vamp:components=3"
        assert config.beta == 0.5
        assert config.latent_dim in (3, 4, 5)
        assert config.learning_rate in (0.1, 0.2)
        assert config.value_of("encoder").dropout <= 0.25
        assert getattr(config.value_of("decoder"), "scale", 2.0) in (2.0, 3.0)
        assert config.early_stopping in (None, 7)
        assert "beta" not in drawn


def test_presets_have_a_place_in_it(graph: Graph) -> None:
    space = space_of(graph)
    for name in NAMED:
        preset = with_preset(Config(), name, (), ENOUGH_TO_STOP)
        params, wanted = space.locate(preset)
        assert wanted
        assert params["encoder"] == preset.value_of("encoder").name
        assert params.get("latent_dim") == (preset.latent_dim if preset.latent_dim <= 128 else None)
        assert params["mask_links"] == preset.mask_links
        assert set(params) <= set(space.all_dimensions())
    accurate = with_preset(Config(), "accurate", (), ENOUGH_TO_STOP)
    assert space_of(graph, {"latent_dim": (8, 64)}).locate(accurate)[1] is False
    assert space_of(graph, {"encoder": ["gcn"]}).locate(accurate)[1] is False
    assert space_of(graph, {"encoder": ["gcn", "normalized"]}).locate(accurate)[1] is True


@pytest.mark.parametrize(
    ("narrowed", "given", "words"),
    [
        ({"latent_dim": "64..16"}, {}, "search: latent_dim=64..16 is empty; give the smaller number first"),
        ({"latent_dim": "0..16"}, {}, "search, latent_dim: a whole number from 1 to 65536 is needed, got 0"),
        ({"latent_dim": ""}, {}, "search: latent_dim has no values"),
        ({"latent_dim": 5}, {}, "search: latent_dim needs a pair of numbers"),
        ({"latent_dim": "a..b"}, {}, "search, latent_dim: a whole number"),
        ({"encoder": "gnc"}, {}, "search: encoder 'gnc' is not one of"),
        ({"encoder": []}, {}, "search: encoder needs a list of names"),
        ({"width": "1..2"}, {}, "search: width is not an option of a model"),
        ({"encoder__width": "1..2"}, {}, "search: encoder__width: no encoder that is searched has such an option"),
        ({"model": "gae,vgae"}, {}, "search: model cannot be searched; search posterior=delta,normal instead"),
        ({"seed": "0..3"}, {}, "search: seed cannot be searched"),
        ({"beta": "1..2"}, {"beta": 1.0}, "search: beta has one value already"),
        ({"posterior": "normal"}, {"model": "gae"}, "search: posterior has one value already"),
        ({"encoder__dropout": "0..0.1"}, {"encoder": "gcn"}, "search: encoder__dropout has one value already"),
        (
            {"posterior": "power_spherical", "prior": "mixture"},
            {},
            "search: the space is empty, because the prior mixture does not go with the posterior power_spherical",
        ),
    ],
)
def test_a_space_that_is_empty_or_unknown_is_one_sentence(
    graph: Graph, narrowed: dict[str, Any], given: dict[str, Any], words: str
) -> None:
    assert words in message_of(lambda: space_of(graph, narrowed, **given))


def test_nothing_to_search_is_one_sentence(graph: Graph) -> None:
    own = ("hidden_dim", "latent_dim", "iterations", "learning_rate", "beta", "free_bits", "mask_links")
    given = {name: getattr(Config(), name) for name in own}
    parts: dict[str, Any] = {
        "encoder": "gcn",
        "posterior": "normal",
        "prior": "standard_normal",
        "decoder": "inner_product",
    }
    assert "there is nothing to search" in message_of(lambda: space_of(graph, **given, **parts))


def test_parts_of_ones_own_are_searched_too(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Threefold(DecoderSpec):
        def check(self, latent_dim: int) -> None:
            if latent_dim % 3:
                raise vgae.InputError("latent_dim: threefold needs a multiple of 3.")

    Threefold.family, Threefold.name = "decoder", "threefold"
    monkeypatch.setitem(spec._REGISTERED["decoder"], "threefold", Threefold)
    found = proposals(space_of(graph, {"decoder": ["threefold", "mlp"]}))
    assert names(found, "decoder") == {"threefold", "mlp"}
    for config, drawn in found:
        assert abs(config.latent_dim - drawn["latent_dim"]) <= 2
