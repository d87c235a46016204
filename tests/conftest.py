import gc
import os
from collections.abc import Iterator

# As the command does for itself: threads that wait soon sleep, so that the suite does not crawl on a busy machine.
os.environ.setdefault("GOMP_SPINCOUNT", "2000")
if "PYTEST_XDIST_WORKER" in os.environ:  # the processes that share the tests share the cores too
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

# The same examples in every run, and no limit on the time an example takes.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")

gc.disable()  # until all tests are collected: what is loaded for them stays


def pytest_configure(config: pytest.Config) -> None:
    """Without a GPU, Triton's kernels are run by its interpreter; it is told before the first kernel is defined."""
    if config.getoption("numprocesses", None):
        return  # this process runs no tests, and those that do need not wait until it has loaded torch
    import torch

    if not torch.cuda.is_available():
        os.environ.setdefault("TRITON_INTERPRET", "1")


def pytest_collection_finish() -> None:
    """What stays to the end, a million objects and more, is not looked through whenever garbage is collected."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Flushes are recorded where they matter (test_powercut.py), and are real where a test starts the command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield
