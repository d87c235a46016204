"""Features of the nodes of a graph: out of a node table, of entries or of a matrix, and brought to scale.

What was done travels with a run as a `FeatureRecipe`, by which other nodes get features in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from vgae.errors import InputError
from vgae.graph.features import Normalization
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray
from vgae.io.entries import arranged, taken_rows
from vgae.io.everywhere import HERE, Here
from vgae.io.nodes import NodeTable
from vgae.io.options import NodeOptions
from vgae.io.recipe import (
    ENTRIES,
    FEW_CATEGORIES,
    Encoded,
    FeatureColumn,
    FeatureRecipe,
    build_features,
    describe,
    notes_on,
)

SCALED = {"rows": "features have rows of unit length", "columns": "features have columns between -1 and 1"}


@dataclass(frozen=True, eq=False)
class Features:
    """Features of nodes (N×D; None where there are none), what made them, and what is to be said about it."""

    matrix: Any = None
    recipe: FeatureRecipe | None = None
    notes: tuple[str, ...] = ()


def fit_features(nodes: NodeTable, rows: IntArray, options: NodeOptions) -> Features:
    """The features of the nodes that have these rows, made as the options say."""
    if nodes.entries is not None:
        matrix, names = taken_rows(nodes.entries.matrix, rows), nodes.entries.names
        columns = () if names is None else (FeatureColumn("features", ENTRIES, fill=0.0, categories=names),)
        return _scaled(Features(matrix, FeatureRecipe(columns)), options.normalize)
    if not nodes.columns.num_columns:
        return Features()
    recipe, encoded, notes = fit_recipe(nodes, options)
    if not recipe.columns:
        return Features(notes=notes)
    return _scaled(Features(build_features(encoded, rows), recipe, notes), options.normalize)


def fit_recipe(
    nodes: NodeTable, options: NodeOptions, everywhere: Here = HERE
) -> tuple[FeatureRecipe, list[Encoded], tuple[str, ...]]:
    """What makes features of the columns of a node table, these as numbers, and what is to be said about it."""
    recipe = FeatureRecipe.fit(
        nodes.columns,
        standardise=options.standardise,
        impute=options.impute,
        origin=nodes.origin,
        everywhere=everywhere,
    )
    known = {column.name for column in recipe.columns}
    left_out = [name for name in sorted(nodes.columns.column_names) if name not in known]
    notes = tuple(f"the column {name} is {_why_left_out(nodes, name, everywhere)} and left out" for name in left_out)
    if not recipe.columns:
        return recipe, [], notes
    encoded = recipe.encode(nodes.columns, nodes.origin)
    filled = [replace(each, num_filled=everywhere.total(each.num_filled)) for each in encoded]
    return recipe, encoded, (*notes, describe(recipe), *notes_on(filled))


def apply_recipe(recipe: FeatureRecipe, nodes: NodeTable, rows: IntArray) -> Features:
    """The features of the nodes that have these rows, made as those of another graph were."""
    notes: tuple[str, ...] = ()
    if nodes.entries is not None:
        if recipe.columns and not recipe.of_entries:
            raise InputError(
                f"{nodes.origin.name}: the features that the model knows came from a table with a row per node, "
                "not from entries or a matrix; give such a table."
            )
        matrix, notes = (
            arranged(nodes.entries, recipe.features, nodes.origin)
            if recipe.columns
            else (
                nodes.entries.matrix,
                (),
            )
        )
        built = taken_rows(matrix, rows)
    else:
        how = recipe if recipe.columns else FeatureRecipe.as_they_are(nodes.columns)
        encoded = how.encode(nodes.columns, nodes.origin)
        built = build_features(encoded, rows)
        notes = (*([describe(recipe)] if recipe.columns else []), *notes_on(encoded))
    scaled = recipe.normalization.apply(built)
    return Features(scaled, recipe, (*notes, *words_on_scale(recipe)))


def scale_graph(graph: Graph, normalize: str | None, recipe: FeatureRecipe | None) -> tuple[Graph, Features]:
    """A graph that came with its features, brought to scale as asked for, or as those of another graph were."""
    if graph.features is None:
        if normalize not in (None, "none"):
            raise InputError("normalize: this graph has no features to bring to scale.")
        return graph, Features()
    if recipe is None:
        found = _scaled(Features(graph.features, FeatureRecipe(())), normalize)
    else:
        found = Features(recipe.normalization.apply(graph.features), recipe, words_on_scale(recipe))
    return (graph if found.matrix is graph.features else graph.with_parts(features=found.matrix)), found


def _scaled(features: Features, how: str | None) -> Features:
    """Features brought to scale, if asked for; features as they are need no recipe."""
    recipe = features.recipe
    if recipe is None:
        return features
    if how in (None, "none"):
        return features if recipe.columns else replace(features, recipe=None)
    normalization = Normalization.fit(features.matrix, str(how))
    recipe = replace(recipe, normalization=normalization)
    return Features(normalization.apply(features.matrix), recipe, (*features.notes, *words_on_scale(recipe)))


def words_on_scale(recipe: FeatureRecipe) -> tuple[str, ...]:
    """How features were brought to scale, if they were."""
    how = recipe.normalization.how
    return (SCALED[how],) if how in SCALED else ()


def _why_left_out(nodes: NodeTable, name: str, everywhere: Here) -> str:
    found = nodes.columns.column(name).unique()
    nothing = not everywhere.every(found.null_count == 0)
    num_texts = nothing + everywhere.num_distinct(found.drop_null())
    return f"a name, with {num_texts:,} different texts," if num_texts > FEW_CATEGORIES else "empty"
