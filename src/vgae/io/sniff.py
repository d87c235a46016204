"""What a text table leaves open, decided by looking at its first lines, and what is no table at all.

delimiter   the one of tab, comma, semicolon, bar and spaces that gives every line the same number of columns, two at
            least. If several do: the one that makes the first row name two ends; tabs; semicolons or bars if all commas
            inside their columns are decimal commas or followed by a space; else the question is handed back.
header      the first row is one if it names the ends or the ids by usual names (source and target, from and to, id …),
            or if the ends below are whole numbers and its own are not. It is none if it holds a number, if a column of
            it looks like all of those below, or if a value of it occurs again: of links in one of the columns of ids,
            of nodes in its own column, the first two looked at. Otherwise it is one.
comments    lines that start with # or %, above the first row, if they have another number of columns or a space after
            the mark; later ones only if they have another number of columns
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vgae.errors import InputError
from vgae.io.rows import (
    MOST_COLUMNS,
    SPACES,
    collapsed,
    fields_of,
    first_lines,
    first_row,
    parse,
    width_of,
    widths_of,
)

DELIMITERS = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars", SPACES: "spaces"}
NO_DELIMITER = "\x1f"  # of a single column: the separator of units, which no text holds
MARKS = ("#", "%")
MARK_BYTES = b"#%"
SNIFFED_LINES = 50
COMPARED_LINES = 10_000
NEARLY_ALL = 0.9  # of the lines, from which on a delimiter is meant although some lines are wrong
DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9.]*,[0-9]+(e[+-]?[0-9]+)?\s*", re.IGNORECASE)
NUMBER = re.compile(r"\s*[+-]?([0-9][0-9.,]*|[.,][0-9]+)(e[+-]?[0-9]+)?\s*", re.IGNORECASE)
WHOLE = re.compile(r"\s*-?[0-9]+\s*")
DIGITS = re.compile("[0-9]+")
ENDS = (
    ("source", "target"),
    ("src", "dst"),
    ("src", "dest"),
    ("from", "to"),
    ("von", "nach"),
    ("quelle", "ziel"),
    ("origin", "destination"),
    ("sender", "receiver"),
    ("sender", "recipient"),
    ("follower", "followee"),
    ("citing", "cited"),
    ("subject", "object"),
    ("head", "tail"),
    ("parent", "child"),
    ("node1", "node2"),
    ("id1", "id2"),
    ("vertex1", "vertex2"),
    ("user1", "user2"),
    ("u", "v"),
    ("i", "j"),
)
IDS = ("id", "ids", "node", "nodes", "vertex", "name", "key", "user")
AFFIXES = ("node", "vertex", "name", "id")
JSON_START = re.compile(rb'\{\s*"[^"]*"\s*:|\[\s*\{\s*"')
SEPARATOR_LINE = re.compile(rb'"?sep=([^\r\n])"?[ \t]*(?:\r?\n|\Z)', re.IGNORECASE)


# ----------------------------------------------------------------------------------------------------- what is no table


def refuse_other_formats(path: Path, content: bytes) -> None:
    """Formats whose lines could pass for rows, and would become another graph than they hold."""
    start = content[:4096].lstrip()
    line = start.split(b"\n", 1)[0].strip()
    if JSON_START.match(start) or (line[:1] in (b"{", b"[") and _is_json(line)):
        raise InputError(f"{path}: this is JSON, not a table; write it as one, with a column for each end of a link.")
    if line[:5].lower() in (b"<?xml", b"<!doc", b"<html"):
        raise InputError(f"{path}: this is a page of HTML or XML, not a table; check what was downloaded.")
    if line.startswith(b"%%MatrixMarket"):
        raise InputError(f"{path}: this is a Matrix Market file, not a table; give it the ending .mtx.")
    if line.lower().startswith(b"*vertices"):
        raise InputError(f"{path}: this is a Pajek file, not a table; give it the ending .net.")


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict | list)
    except (ValueError, RecursionError):
        return False


# ------------------------------------------------------------------------------------------------------------- comments


def start_of_rows(content: bytes) -> int:
    """Where the first line is that is neither empty nor marked as a comment; the length where there is none.

    A marked line in which a quotation begins and does not end is a row that goes on in the next line.
    """
    end = 0
    while end < len(content):
        stop = content.find(b"\n", end) + 1 or len(content)
        line = content[end:stop].strip()
        if line and (line[0] not in MARK_BYTES or (line.count(b'"') % 2 and not _is_remark(line))):
            return end
        end = stop
    return end


def end_of_comments(content: bytes, end: int, delimiter: str, width: int, known: Collection[str]) -> tuple[int, int]:
    """Where the first row is among the marked lines up to `end`, or after them, and how many comments stand above it.

    A marked line is a row if it has the width of the others and no space after the mark, or starts with a known id.
    """
    place, comments = 0, 0
    while place < end:
        stop = content.find(b"\n", place, end) + 1 or end
        line = content[place:stop].strip(b"\r\n")
        if line.strip():
            if width_of(line, delimiter) == width and not (_is_remark(line) and _first(line, delimiter) not in known):
                return place, comments
            comments += 1
        place = stop
    return place, comments


def is_comment(text: str) -> bool:
    """Whether a line of another width than the rows is a comment, and not a row that has gone wrong."""
    return text.startswith(MARKS) and "\n" not in text


def _is_remark(line: bytes) -> bool:
    return line.lstrip(MARK_BYTES)[:1] in (b" ", b"\t", b"")


def _first(line: bytes, delimiter: str) -> str:
    width = width_of(line, delimiter)
    rows = fields_of(collapsed(line) if delimiter == SPACES else line, delimiter, width)
    return rows[0][0] if rows else ""


# ------------------------------------------------------------------------------------------------------------ delimiter


@dataclass(frozen=True)
class _Split:
    """The first lines split at one delimiter: the first row, the usual width, and the share of them that has it."""

    sample: bytes
    delimiter: str
    first: tuple[str, ...]
    width: int
    share: float

    @property
    def even(self) -> bool:
        return self.share == 1.0

    @cached_property
    def rows(self) -> list[tuple[str, ...]]:
        return fields_of(self.sample, self.delimiter, self.width)


def separator_line(content: bytes) -> tuple[str | None, bytes]:
    """The delimiter that a first line like sep=; names, as spreadsheets write it, and the text with that line empty."""
    found = SEPARATOR_LINE.match(content)
    if not found or not found.group(1).isascii():
        return None, content
    return found.group(1).decode(), b"\n" + content[found.end() :]


def find_delimiter(path: Path, content: bytes, *, links: bool, needed: str, least: int = 2) -> str:
    """What splits the first lines into columns; `content` starts with the first row."""
    sample = first_lines(content, SNIFFED_LINES)
    splits = [_split(sample, delimiter, links) for delimiter in DELIMITERS]
    splits = [split for split in splits if 1 < split.width <= MOST_COLUMNS]
    if not splits:
        if least < 2:
            return NO_DELIMITER
        raise InputError(one_column(path, needed))
    even = [split for split in splits if split.even]
    if not even:
        return max(splits, key=lambda split: split.share).delimiter
    naming = [split for split in even if _names(split.first, links)]
    if len(naming) == 1:
        return naming[0].delimiter
    return _best(path, {split.delimiter: split for split in splits}, even, links)


def _split(sample: bytes, delimiter: str, links: bool) -> _Split:
    sample = collapsed(sample) if delimiter == SPACES else sample
    widths = [(width, text) for width, text in widths_of(sample, delimiter) if text.strip()] or [(1, "")]
    plain = [width for width, text in widths if not is_comment(text)] or [width for width, _ in widths]
    usual = max(set(plain), key=lambda width: (plain.count(width), width))
    wrong = sum(width != usual and not is_comment(text) for width, text in widths)
    first = first_row(sample, delimiter)
    if wrong == 1 and len(first) == usual - 1 and lacks_a_name(sample, delimiter, first, links=links):
        wrong = 0
    return _Split(sample, delimiter, first, usual, 1 - wrong / len(widths))


def _best(path: Path, splits: dict[str, _Split], even: list[_Split], links: bool) -> str:
    """Of several delimiters that all split the lines evenly, the one that is meant."""
    found = {split.delimiter: split for split in even}
    spaces = found.pop(SPACES, None)
    if "\t" in found:
        mixed = spaces is not None and _spaces_split_numbers(found["\t"])
        return SPACES if mixed else "\t"
    if spaces and "," in splits and len(found) <= 1 and _holds_decimals(spaces):
        if not links or _columns_without_commas(spaces) >= 2:
            return SPACES
        found |= {SPACES: spaces}
    if not found:  # spaces alone are even, unless another delimiter is meant and some lines are wrong
        return next((name for name, split in splits.items() if name != SPACES and split.share >= NEARLY_ALL), SPACES)
    if len(found) > 1 and "," in found:
        meant = [name for name in found if name != "," and _holds_text_commas(found[name], links)]
        found = {name: found[name] for name in meant} or found
    if len(found) > 1:
        words = " or at ".join(DELIMITERS[name] for name in found)
        raise InputError(f"{path}: its columns may be split at {words}; say at which (delimiter).")
    return next(iter(found))


def _holds_text_commas(split: _Split, links: bool) -> bool:
    """Whether the commas within columns are decimal commas, or of text such as a surname and a first name."""
    fields = [field for row in split.rows for field in row if "," in field]
    if not any(re.search(r",(?! )", field) for field in fields):
        return True
    return _holds_decimals(split) and _columns_without_commas(split) >= (2 if links else 1)


def _holds_decimals(split: _Split) -> bool:
    fields = [field for row in split.rows for field in row if "," in field]
    return bool(fields) and all(DECIMAL_COMMA.fullmatch(field) for field in fields)


def _columns_without_commas(split: _Split) -> int:
    return sum(not any("," in field for field in column) for column in zip(*split.rows, strict=True))


def _spaces_split_numbers(split: _Split) -> bool:
    """Whether spaces within columns stand between numbers only, so that they split columns as tabs do."""
    parts = [field.split() for row in split.rows for field in row if " " in field.strip()]
    return bool(parts) and all(NUMBER.fullmatch(part) for words in parts for part in words)


def one_column(path: Path, needed: str) -> str:
    """The sentence about a table in which nothing splits the columns."""
    return f"{path}: line 1 has one column only; {needed} are needed, or another delimiter."


# --------------------------------------------------------------------------------------------------------------- header


def has_header(content: bytes, delimiter: str, first: Sequence[str], *, links: bool, known: Collection[str]) -> bool:
    """Whether the first row names the columns; `known` are the ids that can occur, where that is known."""
    ends = ends_by_name(first)
    if known:
        return ends is not None and not all(first[place] in known for place in ends)
    first = [field.strip() for field in first]
    rows = fields_of(first_lines(content, SNIFFED_LINES), delimiter, len(first))[1:]
    rows = [tuple(field.strip() for field in row) for row in rows]
    if len(first) == 1:  # a list of ids: any text may be one of them, unless it is what ids are called
        numbers = bool(rows) and all(NUMBER.fullmatch(row[0]) for row in rows)
        return id_by_name(first) is not None or (numbers and not NUMBER.fullmatch(first[0]))
    seen = _seen(content, delimiter, len(first))
    if not first[0]:  # no row lacks its first id; but a header may, above a column that counts the rows
        numbered = first[1:] == [str(number) for number in range(len(first) - 1)]
        return any(first) and (numbered or not links or first[1] not in seen[1])
    again = any(field in (seen[0] | seen[1] if links else column) for field, column in zip(first, seen, strict=False))
    alike = [_alike(field, [row[place] for row in rows]) for place, field in enumerate(first)]
    if _names_columns(first, rows, alike, again=again, links=links):
        return True
    return not (again or any(alike) or any(NUMBER.fullmatch(field) for field in first))


def lacks_a_name(content: bytes, delimiter: str, first: Sequence[str], *, links: bool) -> bool:
    """Whether the first row is a header without a field for the numbers of the rows, as R writes it.

    The second row is then one field longer; and either the first has usual names, or the second begins like a count.
    """
    longer = fields_of(first_lines(content, 2), delimiter, len(first) + 1)
    return len(longer) == 1 and (bool(_names(first, links)) or longer[0][0] in ("0", "1"))


def _names_columns(
    first: Sequence[str], rows: Sequence[Sequence[str]], alike: Sequence[bool], *, again: bool, links: bool
) -> bool:
    """Whether a first row names columns, whatever numbers are in it."""
    named = _names(first, links)
    letters = all(len(first[place]) == 1 for place in named)  # u and v may well be ids
    if named and not any(alike[place] for place in named) and not (letters and again):
        return True
    if list(first) == [str(number) for number in range(len(first))] and not any(alike[:2]):
        return True  # as pandas numbers columns without names
    if _names_rows(first[1:], [row[0] for row in rows]):
        return True
    numbers = links and bool(rows) and all(WHOLE.fullmatch(field) for row in rows for field in row[:2])
    return numbers and not any(NUMBER.fullmatch(field) for field in first[:2])


def _names_rows(names: Sequence[str], labels: Sequence[str]) -> bool:
    """Whether rows are called what columns are, in the same order, as in a matrix."""
    texts = not any(NUMBER.fullmatch(name) for name in names)
    return texts and len(labels) >= 2 and list(names[: len(labels)]) == list(labels) and len(set(labels)) == len(labels)


def ends_by_name(names: Sequence[str]) -> tuple[int, int] | None:
    """The columns that are called what ends of links are usually called."""
    plain = [re.sub("[^a-z0-9]", "", name.casefold()) for name in names]
    for forms in (plain, [_without_affixes(name) for name in plain]):
        for source, target in ENDS:
            if source in forms and target in forms:
                return forms.index(source), forms.index(target)
    return None


def id_by_name(names: Sequence[str]) -> int | None:
    """The column that is called what ids are usually called."""
    for place, name in enumerate(names):
        words = re.split("[^a-z0-9]+", name.strip().casefold())
        if words[-1] in ("id", "ids") or (len(words) == 1 and words[0] in IDS) or words == ["node", "name"]:
            return place
    return None


def _names(first: Sequence[str], links: bool) -> tuple[int, ...]:
    """The columns that a first row names by usual names."""
    if links:
        return ends_by_name(first) or ()
    place = id_by_name(first)
    return () if place is None else (place,)


def _without_affixes(name: str) -> str:
    for _ in range(2):
        for affix in AFFIXES:
            name = name.removesuffix(affix) or name
            name = name.removeprefix(affix) or name
    return name


def _seen(content: bytes, delimiter: str, width: int) -> list[set[str]]:
    """The values of the first two columns below the first row, the spaces around them aside."""
    names = [str(number) for number in range(width)]
    head = first_lines(content, COMPARED_LINES)
    rows = parse(head, delimiter, names, only=names[:2], invalid=lambda _: "skip")
    return [{field.strip() for field in column.to_pylist()} for column in rows.slice(1).columns]


def _alike(field: str, column: Sequence[str]) -> bool:
    """Whether a field with digits looks like all of those below it, but for the numbers in it."""
    shape = DIGITS.sub("0", field)
    return bool(DIGITS.search(field) and column) and all(DIGITS.sub("0", other) == shape for other in column)
