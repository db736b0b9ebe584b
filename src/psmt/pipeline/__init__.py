"""Split work into tasks, cache their results on disk, and run them in processes or on a cluster."""
