"""What a measurement ran on, in one line: it stands beside every figure."""

import os
import platform
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


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
