"""Which tile size suits this machine: the all-pairs op with gradient, by side of the tile, against the best of them.

Sizes are those of Cora and Pubmed, latent dimension 16; rounds alternate between the sides, and medians are compared.

    python benchmarks/tiles.py
"""

import statistics
import time

import torch

from vgae.machine import describe_machine
from vgae.ops import all_pairs_softplus, blocked

SIDES = (256, 400, 512, 600, 720, 800, 1000, 1024, 1200, 1500)


def seconds(z: torch.Tensor, side: int, *, value: bool) -> float:
    blocked.TILE_SIDE["cpu"] = side
    started = time.perf_counter()
    all_pairs_softplus(z, value=value)
    return time.perf_counter() - started


def main() -> None:
    print(describe_machine())
    for num_nodes, rounds in ((2708, 30), (19717, 5)):
        z = (0.5 * torch.randn(num_nodes, 16)).requires_grad_()
        for value in (False, True):
            times: dict[int, list[float]] = {side: [] for side in SIDES}
            for _ in range(rounds):
                for side in SIDES:
                    times[side].append(seconds(z, side, value=value))
            median = {side: statistics.median(values) for side, values in times.items()}
            best = min(median.values())
            kind = "gradient and value" if value else "gradient"
            print(f"\nN = {num_nodes}, {kind}: best {1000 * best:.1f} ms; time over the best, by side of the tile:")
            print("  " + "  ".join(f"{side}: {median[side] / best:.2f}×" for side in SIDES))


if __name__ == "__main__":
    main()
