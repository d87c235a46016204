"""Cut a small part out of two of Debian's package indices, in their own format, for a quick run of the Debian example.

    python make_debian_part.py Packages-12.xz Packages-13.xz

The indices are `dists/bookworm/main/binary-amd64/Packages.xz` and `dists/trixie/…` of any Debian mirror. The part has
the 600 sources with most dependencies in Debian 12, without the few on which nearly everything depends, and of their
packages the names, sections and dependencies among themselves.
"""

import lzma
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = 600
HUBS = {"glibc", "gcc-12", "perl", "python3-defaults"}
Package = dict[str, str]


def packages(path: str) -> Iterator[Package]:
    for text in lzma.decompress(Path(path).read_bytes()).decode().split("\n\n"):
        fields = dict(re.findall(r"^([\w-]+): (.*)$", text, flags=re.MULTILINE))
        if "Package" in fields:
            yield fields


def source_of(package: Package) -> str:
    return package.get("Source", package["Package"]).split()[0]


def needs(package: Package) -> list[str]:
    """The first alternative of each dependency."""
    text = ",".join(package.get(field, "") for field in ("Depends", "Pre-Depends"))
    return [found.group() for item in text.split(",") if (found := re.match(r"[^\s(:|]+", item.strip()))]


def links(index: list[Package]) -> set[tuple[str, str]]:
    home = {package["Package"]: source_of(package) for package in index}
    found = {(source_of(each), home[name]) for each in index for name in needs(each) if name in home}
    return {(source, target) for source, target in found if source != target}


def write(name: str, index: list[Package], chosen: set[str]) -> None:
    kept = {package["Package"] for package in index if source_of(package) in chosen}
    stanzas = []
    for package in (each for each in index if each["Package"] in kept):
        inside = sorted(set(needs(package)) & kept - {package["Package"]})
        lines = [f"Package: {package['Package']}", f"Source: {source_of(package)}", f"Section: {package['Section']}"]
        stanzas.append("\n".join(lines + ([f"Depends: {', '.join(inside)}"] if inside else [])) + "\n")
    (HERE / name).write_bytes(lzma.compress("\n".join(stanzas).encode(), preset=9))


def main(old: str, new: str) -> None:
    indices = [list(packages(path)) for path in (old, new)]
    found = {link for link in links(indices[0]) if not HUBS.intersection(link)}
    ends = Counter(end for link in found for end in link)
    chosen = set(sorted(ends, key=lambda name: (-ends[name], name))[:SOURCES])
    for release, index in zip(("12", "13"), indices, strict=True):
        write(f"debian-{release}-part.xz", index, chosen)


if __name__ == "__main__":
    main(*sys.argv[1:])
