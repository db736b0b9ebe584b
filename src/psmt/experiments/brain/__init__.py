"""Dynamic networks of brains: the study that the paper proposes, on scans of one or several people.

scans -> cleaned series -> group dictionary -> codes of each person -> group embedding -> trajectories -> states
                                                                    -> graphs of atoms over time -> components
      -> prediction of the next volumes of each person
      -> the same on halves of the people, and on surrogates without dynamics -> reproducibility of the states
"""
