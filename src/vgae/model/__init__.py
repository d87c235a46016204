"""The paper's generative model and its inference network, one file per word."""
