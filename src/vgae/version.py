"""The version of the installed package."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("vgae")
except PackageNotFoundError:  # run from a source tree that is not installed
    VERSION = "unknown"
