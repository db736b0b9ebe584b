"""Study of whether the stochastic solution of step 5 is more local than the closed form, and predicts better."""
