"""The machine: what a measurement ran on, in one line, and which of its devices work goes to."""

import os
import platform
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch

from vgae.version import __version__


def describe_machine() -> str:
    """Processor, cores, accelerator and versions."""
    parts = [f"{_processor()}, {os.cpu_count()} cores"]
    if torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name())
    parts.append(f"Python {platform.python_version()}, torch {torch.__version__}, vgae {__version__}")
    return " · ".join(parts)


def working_on(device: torch.device) -> AbstractContextManager[None]:
    """While entered, this GPU is the current one: streams, recordings and kernels go to the current device."""
    entered: AbstractContextManager[None] = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    return entered


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
