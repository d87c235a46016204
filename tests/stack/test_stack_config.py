"""Bases by their names and options: what is read, what is refused and in which words, and how they come back."""

from typing import Any

import numpy as np
import pytest

from helpers import message_of
from vgae.baselines import BASELINES
from vgae.baselines.similarities import SIMILARITIES
from vgae.graph.graph import Graph
from vgae.model.spec import find
from vgae.stack.config import (
    DEFAULT_BASES,
    MODELS,
    SET_BY_STACK,
    StackConfig,
    base_names,
    bases_text,
    parse_base,
    split_bases,
)
from vgae.train.config import Config
from vgae.train.presets import ACCURATE, STACK_MODELS

LINKS = [[0, 1], [1, 2], [2, 3]]


@pytest.mark.parametrize("name", base_names())
def test_every_name_is_a_base(name: str) -> None:
    base = parse_base(name)
    assert base.text == name
    assert (base.config is not None) == (name in MODELS)
    assert StackConfig(bases=name).bases == name


def test_names_of_bases_are_those_of_models_similarities_and_baselines() -> None:
    assert len(set(base_names())) == len(base_names())
    assert set(base_names()) == {*STACK_MODELS, "accurate", "gae", "vgae", *SIMILARITIES, *BASELINES}
    assert split_bases(DEFAULT_BASES) == [*STACK_MODELS, *SIMILARITIES]
    assert bases_text(DEFAULT_BASES) == DEFAULT_BASES == StackConfig().bases


def test_a_preset_has_its_values_and_options_replace_them() -> None:
    config = parse_base("accurate").config
    assert config == Config(
        model="vgae",
        encoder=ACCURATE["encoder"],
        latent_dim=256,
        learning_rate=0.005,
        mask_links=0.3,
        objective="sampled",
    )
    assert config.early_stopping is None  # there is nothing to stop by
    config = parse_base("normalized2(latent_dim=8;mask_links=0.5)").config
    assert config == Config(**(STACK_MODELS["normalized2"] | {"latent_dim": 8, "mask_links": 0.5}), objective="sampled")


@pytest.mark.parametrize(
    ("text", "objective"),
    [("gae", "sampled"), ("gae(objective=exact)", "exact"), ("networks(objective=auto)", "auto")],
)
def test_the_objective_is_sampled_unless_another_is_given(text: str, objective: str) -> None:
    config = parse_base(text).config
    assert config is not None
    assert config.objective == objective


def test_commas_within_parentheses_divide_nothing() -> None:
    text = "gae(encoder=mlp:hops=2,dropout=0.5;latent_dim=8), cosines ,sc"
    config = StackConfig(bases=text)
    assert config.bases == "gae(encoder=mlp:hops=2,dropout=0.5;latent_dim=8),cosines,sc"
    first, *rest = config.bases_for(Graph.from_edges(LINKS, features=np.eye(4)))
    assert [each.text for each in rest] == ["cosines", "sc"]
    assert first.config is not None
    assert first.config.encoder == find("encoder", "mlp:hops=2,dropout=0.5")
    assert first.config.latent_dim == 8


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["gae", "sc"], "gae,sc"),
        (("degrees",), "degrees"),
        (" gae ( latent_dim = 8 ; beta=2 ) ,, sc,", "gae(latent_dim=8;beta=2),sc"),
        ("gae(),degrees()", "gae,degrees"),
        ("gae(;latent_dim=8;)", "gae(latent_dim=8)"),
    ],
)
def test_bases_have_one_spelling(given: Any, text: str) -> None:
    config = StackConfig(bases=given)
    assert config.bases == text
    assert StackConfig(bases=text) == config
    assert StackConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize(
    ("bases", "said"),
    [
        ("", "there are none"),
        (" , ", "there are none"),
        ([], "there are none"),
        (3, "got 3"),
        (None, "got None"),
        (["gae", 3], "names are needed"),
        ("nonsense", "'nonsense' is not one of normalized1"),
        ("GAE", "'GAE' is not one of"),
        ("gae)", "'gae)' is not one of"),
        ("gae,sc,gae", "'gae' is there twice"),
        ("degrees,degrees", "'degrees' is there twice"),
        ("gae,gae()", "'gae' is there twice"),
        ("gae,gae(latent_dim=16)", "'gae' and 'gae(latent_dim=16)' give the same evidence"),
        ("neighbours,cn", "'neighbours' and 'cn' give the same evidence"),
        ("l3,paths", "'l3' and 'paths' give the same evidence"),
        ("ppr,pagerank", "'ppr' and 'pagerank' give the same evidence"),
        ("gae(latent_dim=8", "does not end with )"),
        ("gae(latent_dim=8,sc", "does not end with )"),
        ("gae(latent_dim=8)x", "does not end with )"),
        ("gae(width=8)", "'width=8' in 'gae(width=8)' is not an option"),
        ("gae(latent_dim)", "'latent_dim' in 'gae(latent_dim)' is not an option"),
        ("gae(latent_dim=8,hidden_dim=8)", "latent_dim: a whole number"),
        ("gae(latent_dim=0)", "latent_dim: a whole number from 1"),
        ("gae(latent_dim=8;latent_dim=9)", "latent_dim is there twice"),
        ("gae(encoder=nonsense)", "encoder: 'nonsense' is not one of"),
        ("gae(objective=fast)", "objective: 'fast' is not one of"),
        ("gae(posterior=von_mises_fisher;latent_dim=1)", "bases, 'gae(posterior"),
        ("sc(seed=3)", "seed"),
        ("cn(depth=3)", "cn has no options"),
        ("cosines(hops=3)", "cosines has no options"),
    ],
)
def test_what_is_no_base_is_refused_in_one_sentence(bases: Any, said: str) -> None:
    words = message_of(lambda: StackConfig(bases=bases))
    assert words.startswith("bases")
    assert said in words
    assert "\n" not in words


@pytest.mark.parametrize("name", SET_BY_STACK)
def test_what_the_stack_sets_is_no_option_of_a_base(name: str) -> None:
    assert f"bases: {name} in" in message_of(lambda: parse_base(f"gae({name}=1)"))


def test_the_stack_sets_seed_and_device_of_its_bases() -> None:
    config = StackConfig(bases="gae(iterations=7),dw,degrees", seed=5, device="cpu")
    model, walks, degrees = config.bases_for(Graph.from_edges(LINKS))
    assert model.config is not None
    assert (model.config.seed, model.config.device, model.config.eval_every) == (5, "cpu", 7)
    assert walks.seed == degrees.seed == 5


def test_bases_of_features_are_left_out_where_there_are_none() -> None:
    with_features = Graph.from_edges(LINKS, features=np.eye(4))
    config = StackConfig(bases="gae,cosines,cosine,cn")
    assert [base.text for base in config.bases_for(with_features)] == ["gae", "cosines", "cosine", "cn"]
    assert [base.text for base in config.bases_for(with_features.without_features())] == ["gae", "cn"]
    words = message_of(lambda: StackConfig(bases="cosines,cosine").bases_for(with_features.without_features()))
    assert words == "bases: 'cosines,cosine' can do nothing without features; name others."


def test_a_stack_sees_no_directions_and_no_features_unless_it_uses_them() -> None:
    graph = Graph.from_edges([[1, 0], [1, 2], [2, 3]], features=np.eye(4), weights=[1, 2, 3], directed=True)
    seen = StackConfig().view(graph)
    assert not seen.directed
    assert seen.features is graph.features
    assert seen.weights is not None
    assert np.array_equal(seen.edges, graph.edges)
    assert StackConfig(features=False).view(graph).features is None


def test_columns_are_named_once_in_all_stacks() -> None:
    columns = [column for name in split_bases(DEFAULT_BASES) for column in parse_base(name).columns]
    assert len(set(columns)) == len(columns)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"folds": 1}, "folds: a whole number from 2"),
        ({"base_seeds": 0}, "base_seeds"),
        ({"boosting": 1.5}, "boosting"),
        ({"seed": -1}, "seed"),
        ({"features": 1}, "features"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], said: str) -> None:
    assert said in message_of(lambda: StackConfig(**options))
