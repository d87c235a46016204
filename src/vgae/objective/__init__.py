"""What is minimised: the negative variational bound, exact or with its zeros sub-sampled."""
