"""What `vgae explain` prints, out of an explanation that is made by hand."""

from dataclasses import replace

import pytest

from vgae.baselines.explain import CommonNeighbour, PairEvidence, Path, SharedFeature
from vgae.estimators.explanation import BasePart, Explanation
from vgae.report.explain import print_explanation

PAIR = PairEvidence(
    nodes=("anna", "bert"),
    degrees=(3, 1),
    linked=False,
    num_neighbours=2,
    neighbours=(CommonNeighbour("carl", 4, 0.7213, 0.25),),
    num_paths=1,
    paths=(Path(("dora", "emil"), 0.0625),),
    num_features=1,
    features=(SharedFeature("town=Bonn", (1.0, 1.0), 0.5),),
    cosine=0.5,
)
STACK = Explanation(
    probability=0.0625,
    logit=-1.5,
    known="no",
    pair=PAIR,
    mean=-4.0,
    bases=(BasePart("neighbours", 3.0, {"cn": 2.0, "ra": 0.25}), BasePart("gae", -0.5, {"gae": 0.125})),
)


def test_each_base_is_a_row_and_the_rows_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    print_explanation(STACK)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:8] == [
        "Probability of a link: 0.0625 (logit -1.500).",
        "",
        "The logit is the mean of many pairs (for one of the best, of the best) and what each base adds:",
        "base          adds  evidence",
        "mean        -4.000",
        "neighbours  +3.000  common neighbours 2, resource allocation 0.25",
        "gae         -0.500  score 0.125",
        "logit       -1.500",
    ]
    assert "anna and bert are not linked in the training graph; anna has 3 links, bert has 1 link." in lines
    assert "2 common neighbours, the strongest:" in lines
    assert "anna – dora – emil – bert  0.0625" in lines
    assert "town=Bonn      1       1               0.500" in lines


def test_what_has_no_bases_or_no_probability_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    alone = replace(STACK, probability=float("nan"), known="train", mean=None, bases=())
    print_explanation(alone)
    first, second, third, *rest = capsys.readouterr().out.splitlines()
    assert first == "Probability of a link: undefined (logit -1.500)."
    assert second == "This link is in the training graph, so the model has seen it and its probability says little."
    assert third == ""
    assert rest[0].startswith("anna and bert")


def test_data_holds_everything_once() -> None:
    found = STACK.to_json()
    assert found["bases"][0] == {"base": "neighbours", "adds": 3.0, "evidence": {"cn": 2.0, "ra": 0.25}}
    assert found["mean"] + sum(each["adds"] for each in found["bases"]) == found["logit"]
    assert (found["nodes"], found["neighbours"][0]["node"], found["features"][0]["name"]) == (
        ("anna", "bert"),
        "carl",
        "town=Bonn",
    )
