"""Study of the speeds and noises at which each method predicts better than copying, on the built-in film."""
