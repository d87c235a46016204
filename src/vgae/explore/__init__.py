"""A trained model as one page for a browser: a map of its nodes, its links and those that it predicts."""
