"""GAE and VGAE as estimators in the manner of scikit-learn, and whatever can be asked of a fitted model."""
