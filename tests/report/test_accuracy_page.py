"""The page about accuracy: its tables come from stored results, beside published figures, and its text stays."""

from dataclasses import replace
from pathlib import Path

import pytest

from command import assert_refused, run_vgae
from vgae.errors import InputError
from vgae.experiments.measures import TOP
from vgae.experiments.methods import all_methods
from vgae.experiments.paper import TABLE_1
from vgae.experiments.published import HARD_NON_LINKS, WITH_FEATURES, WITHOUT_FEATURES
from vgae.experiments.results import Archive, GraphFacts, Result, Session, Task
from vgae.report.accuracy import accuracy_page, accuracy_tables, scores_for_json, table_of_scores
from vgae.report.models import BEGIN, END

DOCS = Path(__file__).parents[2] / "docs"
CORA = GraphFacts(2708, 5278, 1433, 527, "a")
BARE = GraphFacts(100, 4000, 0, 400, "b")


def result(graph: str, method: str, seed: int, **metrics: float) -> Result:
    named = {name.replace("_at_", "@"): value for name, value in ({"auc": 0.9, "ap": 0.8} | metrics).items()}
    return Result(Task(graph, method, seed, seed, all_methods()[method].settings), named, 7200.0, fit_seconds=30.0)


FOUND = [
    result("cora", "vgae", 0, auc=0.90, left_out=0.1, auc_linked=0.95, ap_linked=0.96, heart_mrr=0.2),
    result("cora", "vgae", 1, auc=0.94, left_out=0.2, auc_linked=0.97, ap_linked=0.98, heart_mrr=0.4),
    result("cora", "ra", 0, auc=0.7, precision_at_100=0.15, precision_at_1000=0.065),
    result("bare", "ra", 0, auc=0.6, precision_at_100=0.5),
]
ARCHIVE = Archive("1.2.3", 2, [Session("a computer", 4, 90.0)], FOUND, "accuracy", {"cora": CORA, "bare": BARE})


def row(tables: str, title: str, name: str) -> str:
    """A row of the table under a title."""
    section = tables.partition(f"## {title}")[2].partition("\n## ")[0]
    (found,) = [line for line in section.splitlines() if line.startswith(f"| {name} |")]
    return found


def test_the_tables_have_means_errors_and_what_is_missing() -> None:
    tables = accuracy_tables(ARCHIVE)
    assert row(tables, "The graphs", "Cora") == "| Cora | 2,708 | 5,278 | 1,433 | 527 | 15.0 | 2 |"
    assert row(tables, "The graphs", "bare") == "| bare | 100 | 4,000 | 0 | 400 | – | 1 |"
    assert row(tables, "With features", "`vgae`") == "| `vgae` | 92.0 / 80.0 ± 2.0 |"
    assert row(tables, "Without features", "`ra`") == "| `ra` | 70.0 / 80.0 (1) | 60.0 / 80.0 |"
    assert row(tables, "Nodes without training links", "`vgae`") == "| `vgae` | 96.0 / 97.0 ± 1.0 | – |"
    assert row(tables, "The top of the list", "`ra`") == "| `ra` | 15.0 / 6.5 (1) | 50.0 / – |"
    most = "the most that is possible"
    assert row(tables, "The top of the list", most) == f"| {most} | 100.0 / 52.7 | 100.0 / 40.0 |"
    assert TOP == (100, 1000)
    assert row(tables, "Hard non-links", "`vgae`") == "| `vgae` | 30.0 / – / – ± 10.0 |"
    assert row(tables, "Time", "`ra`") == "| `ra` | 30.0 | 30.0 |"
    assert "- 4 runs in 1.5 minutes on a computer" in tables
    assert "4 runs, which took 8.0 hours one after the other" in tables


def test_settings_are_told_with_their_graphs_where_there_are_several() -> None:
    (found, *_) = FOUND
    earlier = replace(found, task=replace(found.task, dataset="bare", settings="--latent-dim 7"))
    assert row(accuracy_tables(ARCHIVE), "Settings", "`vgae`") == "| `vgae` | as it comes |"
    tables = accuracy_tables(replace(ARCHIVE, results=[*FOUND, earlier]))
    assert row(tables, "Settings", "`vgae` on Cora") == "| `vgae` on Cora | as it comes |"
    assert row(tables, "Settings", "`vgae` on bare") == "| `vgae` on bare | `--latent-dim 7` |"


def test_a_stack_is_beside_the_best_of_its_columns_and_of_the_baselines_on_the_same_splits() -> None:
    def stacked(seed: int, **metrics: float) -> Result:
        plain = result("cora", "stack", seed, auc=0.97 + 0.01 * seed)
        return replace(plain, metrics={**plain.metrics, **{k.replace("_", " by "): v for k, v in metrics.items()}})

    stacks = [stacked(0, auc_ppr=0.9, auc_cn=0.95), stacked(1, auc_ppr=0.92, auc_cn=0.85)]
    baselines = [result("cora", "ra", seed, auc=auc) for seed, auc in enumerate((0.7, 0.8, 0.99))]
    baselines += [result("cora", "cn", seed, auc=0.99) for seed in (1, 2)]  # other splits
    tables = accuracy_tables(replace(ARCHIVE, results=[*stacks, *baselines], graphs={"cora": CORA}))
    found = row(tables, "The stack and what it is made of", "Cora, `stack`")
    assert found == "| Cora, `stack` | 97.5 / 91.0 (ppr) / 75.0 (ra) | – | – |"


def test_published_figures_are_beside_ours_with_source_and_differences() -> None:
    tables = accuracy_tables(ARCHIVE)
    assert row(tables, "With features", "_MaskGAE, published_") == "| _MaskGAE, published_ | 96.4 / 95.9 |"
    assert row(tables, "With features", "_VGNAE, published_") == "| _VGNAE, published_ | 95.4 / – |"
    assert row(tables, "Without features", r"_VGAE\*, published_") == r"| _VGAE\*, published_ | 84.0 / 87.7 | – |"
    assert row(tables, "Hard non-links", "_LPFormer, published_") == "| _LPFormer, published_ | 16.8 |"
    for each in (*WITH_FEATURES, *WITHOUT_FEATURES, *HARD_NON_LINKS):
        assert each.source in tables
        assert each.differences in tables
    for each in (*WITH_FEATURES[:2], *WITHOUT_FEATURES):
        assert each.figures == {name: methods[each.name] for name, methods in TABLE_1.items()}


def test_tables_without_rows_are_left_out() -> None:
    only = replace(ARCHIVE, results=[result("bare", "ra", 0)], graphs={"bare": BARE})
    tables = accuracy_tables(only)
    assert "## With features" not in tables
    assert "## Hard non-links" not in tables
    assert "## Without features" in tables


def test_the_terminal_and_json_have_the_same_means() -> None:
    assert table_of_scores(FOUND) == [
        ["AUC / AP", "cora", "bare"],
        ["vgae", "92.0 / 80.0", "–"],
        ["ra", "70.0 / 80.0", "60.0 / 80.0"],
    ]
    found = scores_for_json(ARCHIVE)["cora"]
    assert found["vgae"]["auc"] == pytest.approx({"mean": 92.0, "error": 2.0, "runs": 2})
    assert found["ra"]["precision@100"] == pytest.approx({"mean": 15.0, "error": None, "runs": 1})


def test_only_what_is_between_the_comments_is_written(tmp_path: Path) -> None:
    new = accuracy_page(ARCHIVE)
    assert new == accuracy_page(ARCHIVE, new)
    by_hand = f"# Mine\n\n{BEGIN}\nold\n{END}\n\n## After\n"
    page = accuracy_page(ARCHIVE, by_hand)
    assert page == f"# Mine\n\n{BEGIN}\n\n{accuracy_tables(ARCHIVE)}\n{END}\n\n## After\n"
    ARCHIVE.write(tmp_path / "accuracy.json")
    (tmp_path / "page.md").write_text(by_hand)
    assert run_vgae("report", "accuracy.json", "--out", "page.md", cwd=tmp_path).returncode == 0
    assert (tmp_path / "page.md").read_text() == page
    (tmp_path / "other.md").write_text("# Something else\n")
    assert_refused(run_vgae("report", "accuracy.json", "--out", "other.md", cwd=tmp_path), "no place for the tables")
    both = ("report", str(DOCS / "data" / "ten-splits.json"), "accuracy.json", "--out", "new.md")
    assert_refused(run_vgae(*both, cwd=tmp_path), "reproductions of the paper, or about one models.json")
    with pytest.raises(InputError, match="not of vgae accuracy"):
        accuracy_tables(replace(ARCHIVE, experiment="models"))


def test_the_documented_tables_are_those_of_the_stored_runs() -> None:
    page = (DOCS / "accuracy.md").read_text()
    assert page == accuracy_page(Archive.read(DOCS / "data" / "accuracy.json"), page)
