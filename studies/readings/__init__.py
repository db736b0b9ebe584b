"""Study of Table 1 and Fig. 4 under each reading of the details that the paper leaves open."""
