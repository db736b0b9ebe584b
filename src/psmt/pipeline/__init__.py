"""How work is cut into tasks, kept on disk, and spread over processes and machines."""
