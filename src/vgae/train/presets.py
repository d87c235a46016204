"""Models by name: compositions of parts. The paper's two differ in the posterior alone."""

from __future__ import annotations

PAPER = {"encoder": "gcn", "prior": "standard_normal", "decoder": "inner_product"}

PRESETS: dict[str, dict[str, str]] = {
    "gae": PAPER | {"posterior": "delta"},
    "vgae": PAPER | {"posterior": "normal"},
}
