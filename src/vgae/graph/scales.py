"""The names of the ways to bring features to scale (`features.py`), apart so that listing them loads nothing."""

NORMALIZATIONS = ("none", "rows", "columns")
