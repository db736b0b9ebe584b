"""How each method recovers from a flash, a cut and a jump in a film."""
