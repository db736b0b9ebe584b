"""Sharp changes: what each method makes of a flash, a cut and a jump, and how long it takes to recover."""
