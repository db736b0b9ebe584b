"""The experiment `psmt topology`: which atoms move together in each window, and do they look alike (Fig. 3)?

All windows share one dictionary, so that an atom keeps its number. Only the embedding matrix P changes from window to
window.

    dictionary -> codes -> window_graph, a task per window               -> chosen atoms over time
                        -> link_sets, a task per draw of a null model    -> tests: change, persistence, resemblance
"""
