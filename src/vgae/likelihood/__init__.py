"""What is observed, and with which probability: links between pairs of nodes, given their logits."""
