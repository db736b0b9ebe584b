"""The experiment `psmt brain`: dynamic networks and states in scans of one or several people, as the paper proposes.

scans -> cleaned series -> group dictionary -> codes of each person -> group embedding -> trajectories -> states
                                                                    -> graphs of atoms over time -> components
      -> prediction of the next volumes of each person
      -> the same on halves of the people, and on surrogates without dynamics -> reproducibility of the states
"""
