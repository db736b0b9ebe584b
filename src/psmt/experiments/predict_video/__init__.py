"""The experiment `psmt predict-video`: predict each frame from the frames before it, and write a film of the result."""
