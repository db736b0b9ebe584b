"""Dynamic topology: which atoms move together, window by window, and whether they look alike (Fig. 3 of the paper).

One dictionary serves the whole film, so that an atom keeps its number while the window slides and only P changes.

    dictionary -> codes -> window_graph, a task per window               -> chosen atoms over time
                        -> arrange_atoms, one task                       -> map of all atoms
                        -> link_sets, a task per draw of a null model    -> tests: change, persistence, likeness
"""
