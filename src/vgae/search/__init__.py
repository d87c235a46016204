"""Search for the parts and options that suit a graph, by its validation links alone."""
