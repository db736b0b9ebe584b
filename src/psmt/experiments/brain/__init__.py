"""Dynamic networks of brains: the paper's plan, on scans of one or several people.

scans -> cleaned -> group dictionary -> codes, a task per person -> group embedding -> trajectories -> states
                                                                 -> graphs of atoms over time, a task per person
      -> prediction of what comes next, a task per person
      -> the same on halves, and on surrogates without dynamics: how far states can be trusted
"""
