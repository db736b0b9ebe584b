"""The whole paper on one film: every experiment that has a chapter, and one report. Knows none of them by name."""
