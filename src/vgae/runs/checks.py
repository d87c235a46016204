"""What a run folder or a checkpoint may hold: sizes are checked before a file is read, values before they are used.

Each function raises InputError or ValueError with what is wrong; the caller knows the folder's name.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.graph.split import LinkSplit
from vgae.model.autoencoder import AutoEncoder
from vgae.model.decoders import Decoder
from vgae.train.config import Config
from vgae.train.state import LogEntry
from vgae.version import __version__

if TYPE_CHECKING:
    from vgae.io.recipe import FeatureRecipe

LATENT = "latent."
METRIC = re.compile(r"auc|ap|mrr|hits@\d{1,9}")
VERSION = re.compile(r"(\d{1,9}(?:\.\d{1,9})*)[\w.+-]{0,50}")
LARGEST = float(torch.finfo(torch.float32).max)
FAR = 8  # standard deviations that no draw from a normal distribution reaches in float32
HEADER = 2**20  # bytes: what a safetensors file may hold beside the numbers, at most
ROWS = 2**16  # that are looked at in one go
LINE = 1024  # bytes: more than a logged iteration takes


# ---------------------------------------------------------------------------------------------------------------- sizes


def model_limit(config: Config, num_nodes: int, num_features: int) -> int:
    """Bytes that model.safetensors can have: the weights, and the posterior over the training graph."""
    outline = config.composition.outline(num_features or num_nodes)
    weights = sum(int(tensor.numel()) for tensor in outline.state_dict().values())
    return HEADER + 4 * (weights + num_nodes * sum(config.composition.heads.values()))


def features_limit(num_nodes: int, num_features: int) -> int:
    """Bytes that features.safetensors can have: sparse features without a single 0 take the most."""
    return HEADER + 8 * (num_nodes + 1) + 12 * num_nodes * num_features


def history_limit(config: Config) -> int:
    """Bytes that the logged iterations can have."""
    return LINE * (config.iterations // config.eval_every + 2)


# -------------------------------------------------------------------------------------------------------------- numbers


def check_version(version: Any) -> None:
    """Refuse what a newer vgae has written, which may mean something else by the same words."""
    if version == "unknown" or __version__ == "unknown":  # written or read from a source tree that is not installed
        return
    if not isinstance(version, str) or not (found := VERSION.fullmatch(version)):
        raise ValueError("the version of vgae is none")
    own = VERSION.fullmatch(__version__)
    if own and _numbers(found[1]) > _numbers(own[1]):
        raise InputError(f"it was written by a newer vgae ({version}) than this one ({__version__}); update vgae")


def check_weights(tensors: dict[str, Tensor]) -> None:
    """Weights and posterior are finite float32 numbers."""
    for name, tensor in tensors.items():
        if tensor.dtype != torch.float32 or not bool(torch.isfinite(tensor).all()):
            raise InputError(f"model.safetensors: {name} should hold finite float32 numbers.")


def restore_model(config: Config, input_dim: int, tensors: dict[str, Tensor]) -> AutoEncoder:
    """The configured model with these weights, if they are its weights."""
    weights = {name: tensor for name, tensor in tensors.items() if not name.startswith(LATENT)}
    refusal = "model.safetensors: these are not the weights of the model in config.json."
    outline = config.composition.outline(input_dim).state_dict()  # compared before any memory is taken
    if {name: tensor.shape for name, tensor in weights.items()} != {name: each.shape for name, each in outline.items()}:
        raise InputError(refusal)
    model = config.composition.build(input_dim, torch.Generator())
    model.load_state_dict(weights)
    return model


def check_latent(config: Config, model: AutoEncoder, latent: dict[str, Tensor], num_nodes: int) -> None:
    """The posterior has a row for each node, and no logit of it or of a draw from it can overflow."""
    heads = config.composition.heads
    if set(latent) != set(heads):
        raise InputError(f"model.safetensors: {LATENT}* should be {', '.join(heads)}.")
    for head, tensor in latent.items():
        if tuple(tensor.shape) != (num_nodes, heads[head]):
            raise InputError(f"model.safetensors: {LATENT}{head} should be {num_nodes}×{heads[head]}.")
    if not has_finite_logits(model, latent):
        weights = any(True for _ in model.decoder.parameters())
        where = f"{LATENT}* or the decoder's weights are" if weights else f"{LATENT}* is"
        raise InputError(f"model.safetensors: {where} so large that logits would be infinite.")


@torch.no_grad()
def has_finite_logits(model: AutoEncoder, latent: dict[str, Tensor]) -> bool:
    """Whether all logits stay within float32, and ‖z‖² too, at the mean and FAR deviations from it.

    The decoder bounds them at a point that no dimension of any embedding is beyond.
    """
    farthest = torch.zeros(())
    for start in range(0, len(next(iter(latent.values()))), ROWS):
        part = model.posterior.build({head: tensor[start : start + ROWS].double() for head, tensor in latent.items()})
        reach = part.mean.abs() + FAR * part.variance.sqrt()
        farthest = torch.maximum(farthest, reach.max(dim=0, keepdim=True).values)
    return _is_bounded(model.decoder, farthest)


@torch.no_grad()
def has_bounded_logits(decoder: Decoder, z: Tensor) -> bool:
    """Whether all logits of these embeddings (N×d) stay within float32, and ‖z‖² too."""
    return _is_bounded(decoder, z.double().abs().max(dim=0, keepdim=True).values)


def _is_bounded(decoder: Decoder, farthest: Tensor) -> bool:
    bound = copy.deepcopy(decoder).double().bound(farthest)
    return all(float(largest) < LARGEST for largest in (bound, farthest.square().sum()))  # which NaN is not


# ---------------------------------------------------------------------------------------------------------- description


def check_keys(values: Any, known: Iterable[str], what: str, *, optional: Iterable[str] = ()) -> None:
    """A JSON object has these keys, all of them and no others."""
    if not isinstance(values, dict):
        raise InputError(f"{what}: a JSON object is needed.")
    odd = (set(values) ^ set(known)) - set(optional)
    if odd:
        raise InputError(f"{what}: {', '.join(sorted(odd))[:200]}: missing or not known.")


def check_recipe(recipe: FeatureRecipe, num_features: int) -> None:
    """A recipe makes the features that the model was trained on."""
    for column in recipe.columns:
        numbers = [value for value in (column.mean, column.std, column.fill) if value is not None]
        if not isinstance(column.name, str) or not all(is_number(value) for value in numbers):
            raise InputError("recipe: a name is no text, or a mean, deviation or fill no number.")
        named = column.kind in ("category", "entries")
        if (column.std is not None and column.std < 0) or named != bool(column.categories):
            raise InputError(f"recipe: the column {column.name[:50]!r} has a deviation or categories that cannot be.")
    scales = recipe.normalization.scales
    if scales is not None and not (len(scales) == num_features and all(0 < scale < math.inf for scale in scales)):
        raise InputError("recipe: a number above 0 is needed for each feature that is divided by one.")
    as_they_are = not recipe.columns and recipe.normalization.how != "none" and num_features > 0
    if not as_they_are and len(recipe.features) != num_features:
        raise InputError(f"recipe: it makes {len(recipe.features)} features, but the model has {num_features}.")


def check_history(rows: Sequence[Any], config: Config, iteration: int | None = None) -> list[LogEntry]:
    """The logged iterations of a training that has come to `iteration`, or (None) to its end."""
    history = [LogEntry.from_json(row) for row in rows]
    if not history:
        raise ValueError("the history is empty")
    last = history[-1].iteration if iteration is None else iteration
    ended = last == config.iterations or config.early_stopping is not None
    if last > config.iterations or (iteration is None and not ended):
        raise ValueError("the history does not end where the training does")
    fits = abs(len(history) - last // config.eval_every) <= 2  # before a list of so many numbers is made
    if not fits or [entry.iteration for entry in history] != _logged_iterations(config, last):
        raise ValueError("the history does not fit the iteration")
    for entry in history:
        shares = [share for share in (entry.val_auc, entry.val_ap) if share is not None]
        if len(shares) == 1 or not all(0 <= share <= 1 for share in shares) or entry.seconds < 0:
            raise ValueError(f"the scores or seconds of iteration {entry.iteration} cannot be")
        if max(abs(value) for value in (entry.loss, entry.reconstruction, entry.kl)) > LARGEST:
            raise ValueError(f"the loss of iteration {entry.iteration} cannot be")
    return history


def check_metrics(metrics: dict[str, Any], split: LinkSplit) -> dict[str, dict[str, float]]:
    """Scores from 0 to 1 for each set of held-out pairs that there is, AUC and AP at least."""
    held_out = [name for name, pairs in (("validation", split.val), ("test", split.test)) if len(pairs)]
    check_keys(metrics, held_out, "metrics.json")
    for name, scores in metrics.items():
        known = {metric for metric in scores if METRIC.fullmatch(metric)} if isinstance(scores, dict) else set()
        check_keys(scores, known | {"auc", "ap"}, f"metrics.json, {name}")
        for metric, score in scores.items():
            if not is_number(score) or not 0 <= score <= 1:
                raise InputError(f"metrics.json: the {metric} of {name} should be a number from 0 to 1.")
    return metrics


def is_number(value: object) -> bool:
    """Whether a value out of JSON is a finite number; true and false are none."""
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _logged_iterations(config: Config, iteration: int) -> list[int]:
    """The iterations that have been logged by then."""
    due = [1, *range(config.eval_every, iteration + 1, config.eval_every), config.iterations]
    return sorted({number for number in due if number <= iteration})


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]
