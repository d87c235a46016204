"""The version, written here alone: the build reads this file, and so does every way of running the package."""

__version__ = "0.1.0"
