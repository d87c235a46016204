"""`vgae parts`: every part with its equation, its options and what it can be combined with; wrong ones are refused."""

import json
from pathlib import Path

import pytest

from command import assert_refused, run_vgae
from vgae.experiments.notes import NOTES
from vgae.model.posteriors import PosteriorSpec
from vgae.model.priors import PriorSpec, go_together
from vgae.model.spec import FAMILIES, Spec, is_own, registered
from vgae.options import options_of


def test_every_part_of_the_package_has_its_words_and_no_others_have() -> None:
    own = {(family, name) for family in FAMILIES for name, spec in registered(family).items() if is_own(spec)}
    assert own == set(NOTES)


def own_parts(family: str) -> dict[str, type[Spec]]:
    """The package's: other tests register parts of their own in this process."""
    return {name: spec for name, spec in registered(family).items() if is_own(spec)}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_listed_with_options_and_ranges(family: str, tmp_path: Path) -> None:
    result = run_vgae("parts", family, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    text = " ".join(result.stdout.split())
    for name, spec in own_parts(family).items():
        assert f" {name} " in text
        assert NOTES[family, name].equation in text
        assert NOTES[family, name].source in text
        for each in options_of(spec):
            assert f"{each.name} = " in text
            assert each.allowed in text
    assert max(map(len, result.stdout.splitlines())) <= 120


def test_the_page_of_the_parts_names_them_all_and_quotes_the_command(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "parts.md").read_text()
    for family in FAMILIES:
        row = next(line for line in page.splitlines() if line.startswith(f"| {family} | `"))
        assert all(f"`{name}`" in row for name, spec in registered(family).items() if is_own(spec))
    said = run_vgae("train", "cora", "--prior", "uniform_sphere", cwd=tmp_path).stderr
    assert " ".join(said.split()) in " ".join(page.split())


def test_json_has_all_of_it(tmp_path: Path) -> None:
    found = json.loads(run_vgae("parts", "--json", cwd=tmp_path).stdout)
    assert tuple(found) == FAMILIES
    assert all(set(found[family]) >= set(own_parts(family)) for family in FAMILIES)
    scale = found["encoder"]["normalized"]["options"]["scale"]
    assert scale["allowed"] == "a number above 0"
    assert scale["default"] == registered("encoder")["normalized"]().scale  # type: ignore[attr-defined]
    for name, posterior in own_parts("posterior").items():
        assert issubclass(posterior, PosteriorSpec)
        if posterior.deterministic:
            continue
        for other, prior in own_parts("prior").items():
            assert issubclass(prior, PriorSpec)
            assert (other in found["posterior"][name]["goes_with"]) is go_together(posterior, prior)
            assert (name in found["prior"][other]["goes_with"]) is go_together(posterior, prior)


def test_a_family_that_is_none_is_refused(tmp_path: Path) -> None:
    assert_refused(run_vgae("parts", "loss", cwd=tmp_path), "family", "encoder, posterior, prior, decoder")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--encoder", "transformer"), ("encoder: 'transformer' is not one of", "normalized")),
        (("--encoder", "normalized:hop=2"), ("encoder: 'hop=2' is not understood", "hops", "scale")),
        (("--encoder", "normalized:scale=0"), ("encoder normalized, scale: a number above 0 is needed",)),
        (("--encoder", "gcn:dropout=yes"), ("encoder gcn, dropout: a number",)),
        (
            ("--posterior", "power_spherical", "--prior", "standard_normal"),
            ("standard_normal", "uniform_sphere", "vamp"),
        ),
        (("--prior", "uniform_sphere"), ("uniform_sphere cannot be used with the posterior normal", "power_spherical")),
        (("--model", "gae", "--prior", "vamp"), ("vamp cannot be used with the posterior delta", "normal")),
        (("--decoder", "source_target", "--latent-dim", "3"), ("latent_dim", "source_target", "even")),
        (("--decoder", "mlp", "--objective", "exact"), ("decoder mlp", "has no factors", "sampled or auto")),
    ],
)
def test_what_is_wrong_or_cannot_go_together_is_refused_in_one_sentence(
    options: tuple[str, ...], words: tuple[str, ...], tmp_path: Path
) -> None:
    for command in (("train", "cora", "--json", "--out", "run"), ("plan", "cora")):
        if command[0] == "plan" and "exact" in options:
            continue  # a plan has both objectives, as far as there are
        assert_refused(run_vgae(*command, *options, cwd=tmp_path), *words)
    assert not (tmp_path / "run").exists()
