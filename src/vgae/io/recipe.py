"""Features out of the columns of a node table, and the recipe that gives other nodes the same ones.

What a column is follows from its values, those that are missing aside:

boolean    all are true or false: one feature of 0 and 1
numeric    all are numbers: one feature, as it is, or standardised to mean 0 and standard deviation 1 over the nodes.
           If at least 90 of 100 are numbers, the others are mistakes, and the first of them is named.
category   everything else: a feature of 0 and 1 for each of the different texts, sorted. A column of more than 1,000
           texts, of which nearly every row has its own, holds names and no categories, and is left out.
entries    no column of a table, but features that came entry by entry (`entries.py`), by their names

An empty field is a missing value; in a numeric column so are NA, N/A, NaN, null and None. What is missing is refused,
or filled in on request: a number or a boolean by the mean of its column or by 0, a category by no category. Features
are sparse if fewer than one in ten is not 0. A column that holds nothing is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph.features import Normalization
from vgae.graph.pairs import AnyArray, IntArray
from vgae.io.columns import BoolArray, Numbers, as_numbers, plain
from vgae.io.everywhere import HERE, Here, texts_in
from vgae.io.options import NodeOptions
from vgae.io.source import Origin, listed, table_of
from vgae.io.sparse import SPARSE_SHARE
from vgae.words import count

KINDS = ("numeric", "category", "boolean")
ENTRIES = "entries"
AS_THEY_ARE = Normalization()
MAX_CATEGORIES = 100_000
FEW_CATEGORIES, NAME_SHARE = 1000, 0.9  # above both, of categories and of rows with one of their own, texts are names
DECIMAL_COMMA = r"^[+-]?[0-9]*,[0-9]+$"
NUMERIC_SHARE = 0.9  # of values that are numbers, from which on the others are mistakes
LARGEST = float(np.finfo(np.float32).max)
ASK_FOR_IMPUTATION = 'add it, or have it filled in by impute="mean" (--impute mean)'


@dataclass(frozen=True)
class FeatureColumn:
    """How one column of a table becomes features; `fill` is what stands for a missing value, None that it may not."""

    name: str
    kind: str
    mean: float | None = None
    std: float | None = None
    fill: float | None = None
    categories: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """The names of its features."""
        if self.kind == ENTRIES:
            return self.categories
        return tuple(f"{self.name}={text}" for text in self.categories) if self.kind == "category" else (self.name,)


@dataclass(frozen=True, eq=False)
class Encoded:
    """One column turned into numbers: values, or for categories their places, -1 for none.

    The entry after the last row stands for a node without a row.
    """

    column: FeatureColumn
    values: AnyArray
    num_filled: int
    num_unknown: int


@dataclass(frozen=True)
class FeatureRecipe:
    """What was done to the columns of a node table, so that the same can be done to another."""

    columns: tuple[FeatureColumn, ...]
    normalization: Normalization = AS_THEY_ARE

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features, in their order; that of a category is column=text."""
        return tuple(name for column in self.columns for name in column.features)

    @property
    def of_entries(self) -> bool:
        """Whether the features came entry by entry, and not out of the columns of a table."""
        return any(column.kind == ENTRIES for column in self.columns)

    @classmethod
    def as_they_are(cls, table: pa.Table) -> FeatureRecipe:
        """The recipe that takes every column for a number, as it is."""
        return cls(tuple(FeatureColumn(name, "numeric") for name in table.column_names))

    @classmethod
    def fit(
        cls,
        table: pa.Table,
        *,
        standardise: bool = False,
        impute: str | None = None,
        origin: Origin | None = None,
        everywhere: Here = HERE,
    ) -> FeatureRecipe:
        """The recipe for all columns of a table that hold anything; others may have more of its rows."""
        options = NodeOptions(standardise=standardise, impute=impute)
        origin = origin or Origin("table")
        given = zip(table.column_names, map(plain, table.columns), strict=True)
        found = [_fit_column(origin, name, column, options, everywhere) for name, column in given]
        return cls(tuple(column for column in found if column is not None))

    def apply(self, table: Any, name: str = "table") -> tuple[npt.NDArray[np.float32] | sp.csr_array, tuple[str, ...]]:
        """The features of the rows of another table or data frame, and notes on what was filled in or unknown.

        Its columns are found by name; others are ignored. A category that the recipe does not know becomes none.
        """
        rows = table_of(table, Origin(name))
        encoded = self.encode(rows.data, rows.origin)
        built = build_features(encoded, np.arange(rows.data.num_rows))
        return self.normalization.apply(built), notes_on(encoded)

    def encode(self, table: pa.Table, origin: Origin) -> list[Encoded]:
        """The columns turned into numbers; what does not fit is named by its row."""
        if self.of_entries:
            raise InputError(f"{origin.name}: these features came entry by entry, not out of the columns of a table.")
        there = set(table.column_names)
        absent = [column.name for column in self.columns if column.name not in there]
        if absent:
            known = listed(table.column_names)
            raise InputError(f"{origin.name}: there is no column {absent[0]!r}; its columns are {known}.")
        return [_encode(origin, column, plain(table.column(column.name))) for column in self.columns]

    def to_json(self) -> Any:
        """The recipe as plain values, for a run's config.json."""
        columns = [asdict(column) | {"categories": list(column.categories)} for column in self.columns]
        normalization = self.normalization
        if normalization.how == "none":
            return columns
        scales = None if normalization.scales is None else list(normalization.scales)
        return {"columns": columns, "normalize": normalization.how, "scales": scales}

    @classmethod
    def from_json(cls, content: Any) -> FeatureRecipe:
        """The inverse of `to_json`."""
        try:
            if isinstance(content, list):
                return cls(tuple(_column_from_json(values) for values in content))
            scales = None if content["scales"] is None else tuple(float(scale) for scale in content["scales"])
            if set(content) != {"columns", "normalize", "scales"} or (scales is None) != (
                content["normalize"] != "columns"
            ):
                raise ValueError("normalize and scales do not fit")
            columns = tuple(_column_from_json(values) for values in content["columns"])
            return cls(columns, Normalization(content["normalize"], scales))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"recipe: not a recipe that this version of vgae reads ({error}).") from None


def build_features(
    encoded: Sequence[Encoded], rows: IntArray, *, sparse: bool | None = None
) -> npt.NDArray[np.float32] | sp.csr_array:
    """The features of the nodes that have these rows; sparse if few are not 0, unless it is said."""
    if sparse is None:
        sparse = num_stored(encoded, rows) < SPARSE_SHARE * len(rows) * num_features(encoded)
    starts = np.cumsum([0, *(len(part.column.features) for part in encoded)]).tolist()
    shape = (len(rows), starts[-1])
    given = [
        (part.column.kind == "category", start, part.values[rows]) for part, start in zip(encoded, starts, strict=False)
    ]
    if sparse:
        return _sparse(given, shape)
    dense = np.zeros(shape, dtype=np.float32)
    for category, start, values in given:
        if category:
            at = np.flatnonzero(values >= 0)
            dense[at, start + values[at]] = 1
        else:
            dense[:, start] = values
    return dense


def num_features(encoded: Sequence[Encoded]) -> int:
    """How many features the columns become."""
    return sum(len(part.column.features) for part in encoded)


def num_stored(encoded: Sequence[Encoded], rows: IntArray) -> int:
    """How many of the features of these rows are not 0."""
    taken = ((part.column.kind == "category", part.values[rows]) for part in encoded)
    return sum(int(np.count_nonzero(values >= 0 if category else values)) for category, values in taken)


def _sparse(given: list[tuple[bool, int, AnyArray]], shape: tuple[int, int]) -> sp.csr_array:
    entries = []
    for category, start, values in given:
        at = np.flatnonzero(values >= 0 if category else values)
        columns = start + values[at] if category else np.full(len(at), start)
        entries.append((at, columns, np.ones(len(at)) if category else values[at]))
    i, j, data = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    return sp.csr_array((data.astype(np.float32), (i, j)), shape=shape)


def describe(recipe: FeatureRecipe) -> str:
    """What became of the columns, in a few words."""
    kinds = [column.kind for column in recipe.columns]
    standardised = any(column.std is not None for column in recipe.columns)
    words = {"numeric": "numeric, standardised" if standardised else "numeric", "category": "categorical"}
    counts = [f"{kinds.count(kind)} {words.get(kind, kind)}" for kind in KINDS if kind in kinds]
    return f"{count(len(kinds), 'column')} became {count(len(recipe.features), 'feature')} ({', '.join(counts)})"


def notes_on(encoded: Sequence[Encoded]) -> tuple[str, ...]:
    """What was filled in and what was unknown."""
    notes = []
    filled = sum(part.num_filled for part in encoded)
    if filled:
        notes.append(f"{count(filled, 'missing value')} filled in")
    for part in encoded:
        if part.num_unknown:
            words = "is an unknown category" if part.num_unknown == 1 else "are unknown categories"
            notes.append(f"{count(part.num_unknown, 'value')} of the column {part.column.name} {words}")
    return tuple(notes)


# ------------------------------------------------------------------------------------------------------------ a column


def _fit_column(
    origin: Origin, name: str, column: pa.ChunkedArray, options: NodeOptions, everywhere: Here
) -> FeatureColumn | None:
    """What a column is, by its values; None where there are none, or names of the rows."""
    booleans = _as_booleans(column)
    if everywhere.every(booleans is not None) and booleans is not None:
        known = booleans.values[~booleans.missing]
        if everywhere.total(len(known)) == 0:
            return None
        mean = everywhere.moments(known)[0] if options.impute == "mean" else 0.0
        return FeatureColumn(name, "boolean", fill=_fill(options.impute, mean))
    numbers = as_numbers(column)
    if numbers is None:
        raise InputError(
            f"{origin.name}: the column {name!r} holds {column.type}, which cannot become a feature; leave it out."
        )
    num_known = everywhere.total(int(np.count_nonzero(~numbers.missing)))
    num_text = everywhere.total(int(np.count_nonzero(numbers.text)))
    if num_known == 0:
        return None
    if num_known - num_text >= NUMERIC_SHARE * num_known:
        _require_numbers(origin, name, column, numbers)
        asked = options.standardise or options.impute == "mean"
        mean, std = everywhere.moments(numbers.values[~numbers.missing]) if asked else (0.0, 1.0)
        fill = _fill(options.impute, mean)
        return (
            FeatureColumn(name, "numeric", mean, std, fill)
            if options.standardise
            else FeatureColumn(name, "numeric", fill=fill)
        )
    _refuse_decimal_commas(origin, name, column, numbers, num_known, everywhere)
    texts = texts_in(column)
    number = everywhere.num_distinct(texts)
    if number > FEW_CATEGORIES and number >= NAME_SHARE * num_known:
        return None
    if number > MAX_CATEGORIES:
        raise InputError(
            f"{origin.name}: the column {name!r} holds {number:,} different texts, and at most "
            f"{MAX_CATEGORIES:,} become features; group them, or leave the column out."
        )
    categories = tuple(sorted(everywhere.distinct(texts)))
    return FeatureColumn(name, "category", fill=_fill(options.impute, 0.0), categories=categories)


def _encode(origin: Origin, column: FeatureColumn, given: pa.ChunkedArray) -> Encoded:
    if column.kind == "category":
        return _encode_categories(origin, column, given)
    numbers = _as_booleans(given) if column.kind == "boolean" else as_numbers(given)
    if numbers is None:
        wanted = "true and false" if column.kind == "boolean" else "numbers"
        raise InputError(f"{origin.name}: the column {column.name!r} should hold {wanted} only.")
    _require_numbers(origin, column.name, given, numbers)
    _require_filled(origin, column, numbers.missing)
    values = np.append(np.where(numbers.missing, _or_zero(column.fill), numbers.values), _or_zero(column.fill))
    if column.mean is not None and column.std is not None:
        values = (values - column.mean) / column.std
    return Encoded(column, values, int(numbers.missing.sum()), 0)


def _encode_categories(origin: Origin, column: FeatureColumn, given: pa.ChunkedArray) -> Encoded:
    try:
        text = given.cast(pa.large_string())
    except pa.ArrowException:
        raise InputError(f"{origin.name}: the column {column.name!r} should hold text.") from None
    missing = pc.fill_null(pc.equal(text, ""), True).to_numpy().astype(bool)
    _require_filled(origin, column, missing)
    known = pa.array(column.categories, pa.large_string())
    places = pc.fill_null(pc.index_in(text, value_set=known).cast(pa.int64()), -1).to_numpy()
    return Encoded(column, np.append(places, -1), int(missing.sum()), int(np.count_nonzero((places < 0) & ~missing)))


def _as_booleans(column: pa.ChunkedArray) -> Numbers | None:
    """A column of true and false as 1 and 0; None if it holds anything else."""
    if pa.types.is_large_string(column.type):
        small = pc.utf8_lower(column)
        known = pc.is_in(small, value_set=pa.array(["true", "false"], column.type))
        missing = pc.fill_null(pc.equal(column, ""), True)
        if not pc.all(pc.or_(known, missing), min_count=0).as_py():
            return None
        column = pc.if_else(missing, pa.scalar(None, pa.bool_()), pc.equal(small, "true"))
    elif not pa.types.is_boolean(column.type):
        return None
    values = pc.fill_null(column.cast(pa.float64()), float("nan")).to_numpy()
    return Numbers(values, np.isnan(values), np.zeros(len(values), dtype=bool))


def _require_numbers(origin: Origin, name: str, column: pa.ChunkedArray, numbers: Numbers) -> None:
    """No text in a numeric column, and no number that 32 bits cannot hold."""
    if numbers.text.any():
        row = int(numbers.text.argmax())
        raise InputError(
            f"{origin.at(row)} has {column[row].as_py()!r} in the column {name!r}, "
            "whose other values are numbers; fix it."
        )
    too_large = ~numbers.missing & ~(np.abs(numbers.values) <= LARGEST)
    if too_large.any():
        row = int(too_large.argmax())
        raise InputError(
            f"{origin.at(row)} has {column[row].as_py()} in the column {name!r}, which is beyond "
            "the largest number of 32 bits, 3.4e38."
        )


def _refuse_decimal_commas(
    origin: Origin, name: str, column: pa.ChunkedArray, numbers: Numbers, num_known: int, everywhere: Here
) -> None:
    """A column of numbers with decimal commas is no column of categories."""
    commas = pc.fill_null(pc.match_substring_regex(column, DECIMAL_COMMA), False).to_numpy().astype(bool)
    num_strange = everywhere.total(int(np.count_nonzero(numbers.text & ~commas)))
    if commas.any() and num_known - num_strange >= NUMERIC_SHARE * num_known:
        row = int(commas.argmax())
        raise InputError(
            f"{origin.at(row)} has {column[row].as_py()!r} in the column {name!r}; "
            "write numbers with a decimal point, not a comma."
        )


def _require_filled(origin: Origin, column: FeatureColumn, missing: BoolArray) -> None:
    if column.fill is None and missing.any():
        row = int(missing.argmax())
        raise InputError(f"{origin.at(row)} has no value in the column {column.name!r}; {ASK_FOR_IMPUTATION}.")


def _fill(impute: str | None, mean: float) -> float | None:
    return None if impute is None else mean if impute == "mean" else 0.0


def _or_zero(value: float | None) -> float:
    return 0.0 if value is None else value


def _column_from_json(values: dict[str, Any]) -> FeatureColumn:
    unknown = set(values) - {field.name for field in fields(FeatureColumn)}
    if unknown or values["kind"] not in (*KINDS, ENTRIES):
        raise ValueError(", ".join(sorted(unknown)) or values["kind"])
    for name in ("mean", "std", "fill"):
        if values[name] is not None and not isinstance(values[name], int | float):
            raise ValueError(f"{name} is not a number")
    return FeatureColumn(**(values | {"categories": tuple(str(text) for text in values["categories"])}))
