"""A stack: many kinds of evidence about a pair of nodes, joined by a small model that never saw its label."""
