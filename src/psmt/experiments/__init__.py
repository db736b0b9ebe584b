"""The paper's experiments as tables: no drawing, no printing."""
