"""A prior for `FramePSMT` from other films: `psmt learn`."""
