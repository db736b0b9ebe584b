"""Pictures and tables to one page."""

from psmt.report.page import Cell, Fact, Page, Picture, Section, Table, render
from psmt.report.prediction import prediction_sections
from psmt.report.verdicts import Verdict, prediction_verdicts

__all__ = [
    "Cell",
    "Fact",
    "Page",
    "Picture",
    "Section",
    "Table",
    "Verdict",
    "prediction_sections",
    "prediction_verdicts",
    "render",
]
