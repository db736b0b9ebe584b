"""Study of how each method recovers from a flash, a cut and a jump in a film."""
