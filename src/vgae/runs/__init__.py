"""A trained model in a folder, from the first checkpoint to the complete run."""
