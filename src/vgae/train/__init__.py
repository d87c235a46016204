"""From a graph to a trained model, and to the folder that keeps it."""
