"""How good predicted links are: metrics on held-out pairs, ranked by logits."""
