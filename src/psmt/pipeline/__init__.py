"""Split work into tasks, keep their results on disk, and run them in processes or on a cluster."""
