"""The reference of parts: a page for each family, with the options of each part."""

from __future__ import annotations

from vgae.model.spec import FAMILIES
from vgae.report.parts import PartInfo, describe_parts, own_parts
from vgae_site.markdown import escaped, fenced, option_table

FOLDER = "reference/parts"
WHAT = {
    "encoder": "What turns features and links into numbers for each node.",
    "posterior": "What is inferred about each node: a point, or a distribution.",
    "prior": "What the posterior is held against, by the KL.",
    "decoder": "What turns two embeddings into the logit of a link.",
}


def part_pages() -> dict[str, str | bytes]:
    """A page for each family, and the list of them."""
    rows = "\n".join(f"- [{family.capitalize()}s]({family}.md): {WHAT[family]}" for family in FAMILIES)
    index = (
        "# Parts and their options\n\nA model is four parts. These pages have every option of every part; "
        "[parts and presets](../../parts.md) says how parts are put together, and [models](../../models.md) what they "
        f"score.\n\n{rows}\n\n```{{toctree}}\n:hidden:\n\n" + "\n".join(FAMILIES) + "\n```\n"
    )
    pages: dict[str, str | bytes] = {f"{FOLDER}/index.md": index}
    return pages | {f"{FOLDER}/{family}.md": _page(family) for family in FAMILIES}


def _page(family: str) -> str:
    own = own_parts("vgae")[family]
    parts = [
        f"# {family.capitalize()}s",
        f'{WHAT[family]} Given as `{family}="name:option=value,option=value"` in Python and as '
        f"`--{family} name:option=value,option=value` to the command. The paper's VGAE has `{own}`.",
    ]
    for part in describe_parts(family):
        parts += _part(part)
    return "\n\n".join(parts) + "\n"


def _part(part: PartInfo) -> list[str]:
    found = [f"## {part.name}", fenced(part.equation, "text")]
    if part.note is not None:
        facts = {"When": part.note.use, "Cost": part.note.cost, "Source": f"{part.note.source}."}
        found.append("\n".join(f"- **{name}.** {escaped(text)}" for name, text in facts.items()))
    found.append(escaped(part.goes_with))
    if part.options:
        found.append(option_table(part.options, "option"))
    return found
