"""The validation score: AUC and AP of the posterior mean; to stop by the top, AP among more non-links too."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.evaluation.metrics import auc_and_ap, average_precision
from vgae.graph.split import HeldOut
from vgae.model.autoencoder import AutoEncoder
from vgae.model.inputs import EncoderInputs
from vgae.train.diverged import require_finite
from vgae.train.job import Job
from vgae.train.non_links import more_non_links


class Validation:
    """The pairs that a training is judged by while it runs."""

    def __init__(self, job: Job, held_out: HeldOut, device: torch.device) -> None:
        config, pairs = job.config, held_out.pairs
        self.job, self.num_links, self.num_pairs = job, len(held_out.links), len(pairs)
        if config.early_stopping is not None and config.stop_by == "top":
            pairs = np.concatenate([pairs, more_non_links(job.labels, held_out, config.seed)])
        self.pairs = torch.tensor(pairs, device=device)

    @torch.no_grad()
    def __call__(self, model: AutoEncoder, inputs: EncoderInputs, iteration: int) -> dict[str, float]:
        """The scores of the model as it is."""
        logits = self.logits(model, inputs)
        require_finite(logits, iteration, self.job)
        return self.scores(logits.cpu().numpy())

    def logits(self, model: AutoEncoder, inputs: EncoderInputs) -> Tensor:
        """Those of the pairs."""
        return model.decoder.logits(model.encode(inputs).mean, self.pairs)

    def scores(self, logits: npt.NDArray[np.float32]) -> dict[str, float]:
        """AUC and AP, and what else training stops by."""
        links, non_links, more = np.split(logits, [self.num_links, self.num_pairs])
        found = auc_and_ap(links, non_links)
        return found | {"top": average_precision(links, more)} if len(more) else found
