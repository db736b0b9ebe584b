"""The engine of a torch device: a GPU, or the CPU for tests."""
