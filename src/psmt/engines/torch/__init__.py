"""The engine of a torch device: one GPU, or the CPU to test it with."""
