"""What a benchmark ran on: printed with every figure."""

import platform
from pathlib import Path

import torch

import vgae


def describe_machine() -> str:
    """Processor, threads, accelerator and versions, in one line."""
    parts = [f"{_processor()}, {torch.get_num_threads()} threads"]
    if torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name())
    parts.append(f"Python {platform.python_version()}, torch {torch.__version__}, vgae {vgae.__version__}")
    return " · ".join(parts)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
