"""Pictures, tables and claims to one page. Knows no experiment."""

from psmt.report.claim import LEVEL, TIE, UNTESTED, Claim, Outcome, decided, some
from psmt.report.page import Cell, Fact, Page, Picture, Section, Table, render
from psmt.report.tables import to_csv

__all__ = [
    "LEVEL",
    "TIE",
    "UNTESTED",
    "Cell",
    "Claim",
    "Fact",
    "Outcome",
    "Page",
    "Picture",
    "Section",
    "Table",
    "decided",
    "render",
    "some",
    "to_csv",
]
