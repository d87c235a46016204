"""What there is to say about each part beside its options: its equation, its source, when to use it, what it costs.

`vgae parts` prints these, and docs/models.md has them beside the scores.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PartNote:
    """A part in words."""

    equation: str
    source: str
    use: str
    cost: str


KIPF = "Kipf & Welling, 2016"
NO_MORE = "No more than the paper's"

NOTES: dict[tuple[str, str], PartNote] = {
    ("encoder", "gcn"): PartNote(
        "H = ReLU(Ã X W₀), head = Ã H W_head",
        KIPF,
        "The paper's figures; graphs without features; with unit_rows and dropout a good start on your own.",
        "That of the paper's VGAE.",
    ),
    ("encoder", "linear"): PartNote(
        "head = Ã^K X W_head",
        "Salha, Hennequin & Vazirgiannis, 2019 (linear graph auto-encoders)",
        "A baseline with one matrix per head; few nodes, where a hidden layer overfits.",
        "Less than the paper's: no hidden layer, and hidden_dim plays no part.",
    ),
    ("encoder", "normalized"): PartNote(
        "mean = Ã^K s·U, U the rows of X W with length one; other heads = Ã^K X W_head",
        "Ahn & Kim, 2021 (GNAE, VGNAE)",
        "The best scores on citation graphs; nodes without links, which it does not shrink to zero.",
        "As linear. It is best with latent_dim 128 and more, and then the sum over all pairs costs most.",
    ),
    ("encoder", "mlp"): PartNote(
        "H = ReLU(X W₀), head = Ã^K H W_head",
        "Gasteiger, Bojchevski & Günnemann, 2019 (first predict, then propagate)",
        "Dense features that say much by themselves, such as Pubmed's; with mask_links and dropout.",
        f"{NO_MORE}, at the same widths.",
    ),
    ("encoder", "directed"): PartNote(
        "H = ReLU(Ã_out X W_out + Ã_in X W_in + X W_own), heads alike",
        "Rossi et al., 2023 (Dir-GNN)",
        "Directed graphs, with a decoder that tells directions; without directions both ways are one.",
        "Three times the weights, and two propagations in each layer.",
    ),
    ("posterior", "delta"): PartNote(
        "z_i = μ_i",
        KIPF,
        "A GAE: embeddings without a spread, no KL. It tells nothing about how sure a link is.",
        "Less than the paper's: one head, no draws.",
    ),
    ("posterior", "normal"): PartNote(
        "q(z_i) = N(μ_i, diag(σ_i²))",
        KIPF,
        "A VGAE: draws, and how sure each link is; it overfits less than points do.",
        "That of the paper's VGAE.",
    ),
    ("posterior", "power_spherical"): PartNote(
        "q(z_i) ∝ (1 + μ_iᵀz)^κ_i on the unit sphere",
        "De Cao & Aziz, 2020; on graphs, with another distribution: Davidson et al., 2018 (S-VGAE)",
        "Embeddings for search by cosine; a prior that does not pull them to zero.",
        "Gamma variables in place of normal ones; take the decoder scaled:scale=5, since z_i·z_j is at most 1.",
    ),
    ("prior", "standard_normal"): PartNote(
        "p(z) = N(0, I)",
        KIPF,
        "The paper's figures.",
        "That of the paper's VGAE; the KL has a closed form.",
    ),
    ("prior", "learned_normal"): PartNote(
        "p(z) = N(0, diag(s²)), s learned",
        "one scale per dimension, as automatic relevance determination has it (Neal, 1996)",
        "A larger beta: the prior follows the embeddings in scale. Alone it does not save the true bound.",
        f"{NO_MORE}; the KL has a closed form.",
    ),
    ("prior", "mixture"): PartNote(
        "p(z) = Σ_k π_k N(m_k, diag(s²)), π, m, s learned",
        "Jiang et al., 2017 (VaDE); on graphs: Hui et al., 2020 (GMM-VGAE)",
        "Clusters: vgae cluster gives the membership of each node.",
        "N×K densities in each step, at its own draw; ten k-means and EM, once.",
    ),
    ("prior", "vamp"): PartNote(
        "p(z) = 1/K Σ_k q(z | u_k), u learned",
        "Tomczak & Welling, 2018 (VampPrior)",
        "A flexible prior on the plane or the sphere, without a number of clusters in mind.",
        "N·K·d numbers in each step, and the encoder once more for K pseudo-nodes.",
    ),
    ("prior", "uniform_sphere"): PartNote(
        "p(z) = Γ(d/2) / (2 π^(d/2)) on the unit sphere",
        "Davidson et al., 2018 (S-VGAE)",
        "The prior of a posterior on the sphere, unless another is given.",
        "Nothing: the KL is the posterior's entropy and a constant.",
    ),
    ("prior", "laplacian"): PartNote(
        "p(Z) ∝ exp(-½ tr Zᵀ(L + εI)Z), L = D - A of the training graph",
        "a Gaussian Markov random field; as a regulariser: Belkin & Niyogi, 2003",
        "Few features or none: linked nodes are near each other before anything is observed.",
        "One more sparse product in each step, and a determinant once for each graph.",
    ),
    ("decoder", "inner_product"): PartNote(
        "logit_ij = z_i·z_j",
        KIPF,
        "The paper's figures; embeddings for search by inner product.",
        "That of the paper's VGAE.",
    ),
    ("decoder", "scaled"): PartNote(
        "logit_ij = s·z_i·z_j + b, or + a_i + a_j with node_bias",
        "degree correction: Karrer & Newman, 2011; Hoff, 2005",
        "The true bound, posteriors on the sphere, and (node_bias) degrees that differ a lot; b is the density.",
        f"{NO_MORE}.",
    ),
    ("decoder", "bilinear"): PartNote(
        "logit_ij = z_iᵀ W z_j + b, W diagonal or full",
        "Yang et al., 2015 (DistMult); Nickel et al., 2011 (RESCAL)",
        "Nodes that link to unlike ones: negative weights. Full: directions.",
        "Twice the sum over all pairs: its weights may be negative, so that half a sweep is not enough.",
    ),
    ("decoder", "distance"): PartNote(
        "logit_ij = b - s·‖z_i - z_j‖²",
        "Hoff, Raftery & Handcock, 2002 (latent space models)",
        "Maps, and embeddings for search by distance: what is near is linked. It scores less than inner products.",
        f"{NO_MORE}.",
    ),
    ("decoder", "source_target"): PartNote(
        "logit_ij = s_i·t_j + b, z = [s, t]",
        "Ou et al., 2016 (HOPE); Salha et al., 2019",
        "Directed graphs: each node has a role as a source and another as a target.",
        "Up to twice the sum over all pairs, which is not symmetric, of half the dimensions.",
    ),
    ("decoder", "gravity"): PartNote(
        "logit_ij = m_j - λ log(‖z_i - z_j‖² + ε) + b, m the last dimension of z",
        "Salha et al., 2019",
        "Directed graphs in which some nodes attract links from all around.",
        "It has no factors: the sampled objective; recommendations by blocks of pairs.",
    ),
    ("decoder", "mlp"): PartNote(
        "logit_ij = a network on z_i∘z_j",
        "as in the link predictor of Hu et al., 2020 (OGB)",
        "The last point of AUC where there are many links, such as Pubmed's.",
        "It has no factors: the sampled objective; recommendations by blocks of pairs.",
    ),
}
