"""Files gone wrong: bytes that a disk, a network, an editor or a stranger has changed."""

from collections.abc import Callable
from random import Random

PIECES = (
    b"\0", b'"', b"'", b'""', b",", b";", b"\t", b"|", b" ", b"\n", b"\r", b"\r\n", b"\n\n\n", b"#", b"%", b"# a\n",
    b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xc3", b"\xed\xa0\x80", b"\x1b[31m", b"\x85", b"\xe2\x80\xa8", b"1e999",
    b"-1", b"nan", b"inf", b"99999999999999999999999", b"1,5", b"sep=;\n", b"{", b"[", b"<", b">", b"&", b"&#0;",
    b"]]>", b"<!--", b"<!DOCTYPE x>", b"\xf0\x9f\x98\x80", b"source,target\n", b"a,b\n", b"0,1\n", b"true", b"NaN",
)  # fmt: skip


def flip(content: bytes, random: Random) -> bytes:
    """A few bytes become others."""
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 1, 2, 5, 20))):
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def truncate(content: bytes, random: Random) -> bytes:
    """The end is missing, or the beginning."""
    place = random.randrange(len(content))
    return content[:place] if random.random() < 0.8 else content[place:]


def insert(content: bytes, random: Random) -> bytes:
    """Pieces that mean something to some reader, anywhere."""
    for _ in range(random.choice((1, 1, 2, 4))):
        place = random.randint(0, len(content))
        content = content[:place] + random.choice(PIECES) + content[place:]
    return content


def cut_out(content: bytes, random: Random) -> bytes:
    """A stretch is missing, or there twice."""
    start = random.randrange(len(content))
    stop = min(len(content), start + random.choice((1, 2, 10, 100)))
    return content[:start] + (content[start:stop] * 2 if random.random() < 0.5 else b"") + content[stop:]


def lines(content: bytes, random: Random) -> bytes:
    """Lines are dropped, there twice, or in another order."""
    rows = content.splitlines(keepends=True)
    how = random.randrange(3)
    if how == 0:
        del rows[random.randrange(len(rows))]
    elif how == 1:
        rows.insert(random.randrange(len(rows)), random.choice(rows))
    else:
        random.shuffle(rows)
    return b"".join(rows)


def inflate(content: bytes, random: Random) -> bytes:
    """One field is huge."""
    place = random.randint(0, len(content))
    filler = random.choice((b"x", b" ", b'"', b"\n", b"1", b",", b"#", b"<", "é".encode()))
    return content[:place] + filler * random.choice((1000, 70_000, 300_000)) + content[place:]


def reencode(content: bytes, random: Random) -> bytes:
    """Text in another encoding than it was."""
    text = content.decode("utf-8", errors="replace")
    name = random.choice(("utf-16", "utf-16-le", "latin-1", "cp1252", "utf-32", "utf-7", "utf-8-sig"))
    return text.encode(name, errors="replace")


MUTATIONS: tuple[Callable[[bytes, Random], bytes], ...] = (
    flip,
    flip,
    truncate,
    insert,
    insert,
    cut_out,
    lines,
    inflate,
    reencode,
)


def mutate(content: bytes, random: Random) -> bytes:
    """The content, gone wrong in one way or two."""
    for _ in range(random.choice((1, 1, 2))):
        if content:
            content = random.choice(MUTATIONS)(content, random)
    return content
