"""Whatever is given to an estimator and its methods: taken, or named in one sentence."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vgae
from vgae.errors import InputError
from vgae.estimators.fitted import NO_PAIRS
from vgae.train.config import Config, choose_device

ESTIMATORS = [vgae.GAE, vgae.VGAE]


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    return vgae.split_links(vgae.stochastic_block_model(200, 4, feature_dim=40, seed=9), seed=0)


@pytest.fixture(scope="module")
def variational(split: vgae.LinkSplit) -> vgae.VGAE:
    return vgae.VGAE(seed=4, iterations=20).fit(split.train, validation=split.val)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_constructor_keeps_whatever_it_is_given_and_fit_checks_it(
    estimator: type[vgae.GAE], split: vgae.LinkSplit
) -> None:
    model = estimator(latent_dim=-5)
    assert model.latent_dim == -5
    with pytest.raises(InputError, match="latent_dim"):
        model.fit(split.train)


def test_pairs_out_of_range_are_named(split: vgae.LinkSplit) -> None:
    model = vgae.GAE(iterations=2).fit(split.train)
    with pytest.raises(InputError, match=r"row 1 is \(0, 200\)"):
        model.predict_proba([(0, 1), (0, 200)])


def test_what_is_not_held_out_pairs_is_named(split: vgae.LinkSplit) -> None:
    with pytest.raises(InputError, match=r"split\.val or split\.test, not LinkSplit"):
        vgae.GAE(iterations=2).fit(split.train, validation=split)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not tuple"):
        vgae.GAE(iterations=2).fit(split.train).score((1, 2))


def test_early_stopping_needs_validation_pairs(split: vgae.LinkSplit) -> None:
    for nothing in (None, vgae.HeldOut.none()):
        with pytest.raises(InputError, match="early_stopping"):
            vgae.GAE(early_stopping=10).fit(split.train, validation=nothing)


def test_draws_that_cannot_be_are_refused(variational: vgae.VGAE, split: vgae.LinkSplit) -> None:
    for samples in (1, 0, -3, 2.5, True):
        with pytest.raises(InputError, match=f"samples: .*at least 2 draws are .* got {samples}"):
            variational.predict_links([(0, 1)], samples=samples)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"seed: .* got -1"):
        variational.recommend(1, samples=2, seed=-1)
    point = vgae.GAE(iterations=2).fit(split.train)
    with pytest.raises(InputError, match="GAE has one point for each node and no spread"):
        point.recommend(1, samples=2)
    assert point.predict_links([(0, 1)]).std is None


def test_validation_pairs_that_training_would_see_are_refused(split: vgae.LinkSplit) -> None:
    whole = vgae.Graph.from_edges(np.concatenate([split.train.edges, split.val.links, split.test.links]), num_nodes=200)
    model, num = vgae.GAE(iterations=1), len(split.val.links)
    with pytest.raises(
        InputError, match=rf"^validation: {num} of its {num} links .* fit the training graph .*split\.train"
    ):
        model.fit(whole, validation=split.val)
    one = np.concatenate([split.train.edges, split.val.links[:1]])
    with pytest.raises(InputError, match=f"validation: 1 of its {num} links"):
        model.fit(vgae.Graph.from_edges(one, num_nodes=200), validation=split.val)
    links, non_links = split.val.links, split.val.non_links
    reversed_links = vgae.HeldOut(split.train.edges[:3, ::-1], non_links)
    with pytest.raises(InputError, match="validation: 3 of its 3 links"):
        model.fit(split.train, validation=reversed_links)
    for pairs, words in (
        (vgae.HeldOut(links, split.train.edges[:4]), "validation: 4 of its 4 non-links are links of the graph"),
        (vgae.HeldOut(links, links[::-1]), f"validation: {num} pairs are given as links and as non-links"),
        (vgae.HeldOut(links, NO_PAIRS), f"validation: links and non-links are needed, got {num} links and 0 non-links"),
        (vgae.HeldOut(NO_PAIRS, non_links), f"validation: .* got 0 links and {num} non-links"),
        (vgae.HeldOut(np.array([[3, 3]]), non_links), "validation: there is a pair of a node with itself"),
        (vgae.HeldOut(np.array([[3, 200]]), non_links), r"validation, links: row 0 is \(3, 200\)"),
        (vgae.HeldOut(np.array([1, 2, 3]), non_links), "validation, links: expected two columns"),
        (vgae.HeldOut(links, non_links, -3), "validation: num_graph_links"),
    ):
        with pytest.raises(InputError, match=words):
            model.fit(split.train, validation=pairs)
    assert model.fit(split.train, validation=vgae.HeldOut.none()).history_[0].val_auc is None


def test_scoring_links_that_were_trained_on_is_told(split: vgae.LinkSplit) -> None:
    model = vgae.GAE(iterations=2).fit(split.train)
    seen = vgae.HeldOut(np.concatenate([split.test.links, split.train.edges[:7, ::-1]]), split.test.non_links)
    with pytest.warns(
        UserWarning, match=f"7 of the {len(seen.links)} links to score are links of the model's own graph"
    ):
        model.score(seen)
    for only in (vgae.HeldOut(split.test.links, NO_PAIRS), vgae.HeldOut(NO_PAIRS, split.test.non_links)):
        with pytest.raises(InputError, match="Links and non-links are needed"):
            model.score(only)


WRONG: list[Any] = [2.5, "3", True, None, 0, -1, [1], {}, float("nan"), 1j, np.float32(2), b"1"]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_wrong_numbers_of_links_and_nodes_are_named(variational: vgae.VGAE, wrong: Any) -> None:
    for call in (variational.recommend, lambda k: variational.recommend(k, [1]), lambda k: variational.similar(1, k)):
        with pytest.raises(InputError, match=r"^k: a whole number of at least 1 is needed"):
            call(wrong)
    if wrong not in (None, 0):
        if wrong == "3":  # text is an id, and the ids of nodes without any are their indices
            assert [int(node) for node, _ in variational.similar(wrong)] == [node for node, _ in variational.similar(3)]
        else:
            words = "a whole number from 0 to 199 is needed" if wrong != b"1" else "b'1', which is not the id of a node"
            with pytest.raises(InputError, match=f"^node: {words}"):
                variational.similar(wrong)
        with pytest.raises(InputError, match=r"^seed: a whole number of at least 0 is needed"):
            variational.recommend(1, seed=wrong)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([], "none is given"),
        (np.empty(0, dtype=np.int64), "none is given"),
        ([3, 7, 3], "3 is given twice"),
        ([200], "200 is not a node"),
        ([-1], "-1 is not a node"),
        (5, "a list of node indices"),
        ("ab", r"a list of nodes is needed; write \['ab'\]"),
        ([1.5], "a list of node indices"),
        (["ab"], "'ab', which is not the id of a node; ids look like 0, 1, 2"),
        (["7", 7], "7 is given twice"),
        (["7", 1.5], "1.5; a node is named by its index, a whole number, or by its id, a text"),
        (["7", 200], "200, but node indices run from 0 to 199"),
        ([True], "a list of node indices"),
        ([None], "a list of node indices"),
        ([[1], [2]], "a list of node indices"),
        ([[1], [2, 3]], "a list of node indices"),
        ({1: 2}, "a list of node indices"),
        ([10**30], "a list of node indices"),
    ],
    ids=repr,
)
def test_wrong_nodes_are_named(variational: vgae.VGAE, nodes: Any, words: str) -> None:
    with pytest.raises(InputError, match=f"^nodes: .*{words}"):
        variational.recommend(1, nodes)


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=8),
    st.binary(max_size=3),
    st.just(10**400),
    st.sampled_from(
        [np.float64("nan"), np.complex64(1), np.int8(-3), np.array([1, 2]), np.array("gae"), object, {}, []]
    ),
    st.lists(st.integers(), max_size=2),
)


@given(option=st.sampled_from(sorted(vgae.GAE().get_params(deep=False))), value=ANYTHING)
@settings(max_examples=400)
def test_no_parameter_is_too_strange_to_be_named(option: str, value: Any) -> None:
    """Whatever is given to the constructor, `fit` takes it or names it in one sentence."""
    model = vgae.GAE(**{option: value})
    words = ""
    try:
        config = model._config()
    except InputError as error:
        words = str(error)
    if words:
        assert words.startswith(f"{option}: ")
        return
    assert Config.from_json(json.loads(json.dumps(config.to_json()))) == config
    if option == "device":
        with suppress(InputError):
            assert choose_device(config.device).type in ("cpu", "cuda")


@pytest.mark.parametrize("checkpoint", [5, 2.5, True, "", "a\0b", [], b"x", ...], ids=repr)
def test_what_is_no_folder_for_checkpoints_is_named(split: vgae.LinkSplit, checkpoint: Any) -> None:
    with pytest.raises(InputError, match=r"^checkpoint: the name of a folder is needed"):
        vgae.GAE(iterations=1).fit(split.train, checkpoint=checkpoint)


@pytest.mark.parametrize("every", [-1, float("nan"), float("inf"), "5", True, [1], 1j], ids=repr)
def test_wrong_pauses_between_checkpoints_are_named(split: vgae.LinkSplit, every: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^checkpoint_every: a number of at least 0 is needed"):
        vgae.GAE(iterations=1).fit(split.train, checkpoint=tmp_path / "kept", checkpoint_every=every)
    assert not (tmp_path / "kept").exists()
    with pytest.raises(InputError, match="there is no folder to write to"):
        vgae.GAE(iterations=1).fit(split.train, checkpoint_every=1)
