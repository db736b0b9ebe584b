"""How often the intervals of `psmt.evaluation` cover the truth, and how often they find an effect."""
