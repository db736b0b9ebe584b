"""Us and the peers in one process."""
