"""Pictures, tables and claims to one page. Knows no experiment."""

from psmt.report.claim import LEVEL, TIE, UNTOLD, Claim, Outcome, all_hold, decided, judged, some
from psmt.report.page import Cell, Fact, Page, Picture, Section, Table, render
from psmt.report.tables import csv_lines, csv_parts, to_csv

__all__ = [
    "LEVEL",
    "TIE",
    "UNTOLD",
    "Cell",
    "Claim",
    "Fact",
    "Outcome",
    "Page",
    "Picture",
    "Section",
    "Table",
    "all_hold",
    "csv_lines",
    "csv_parts",
    "decided",
    "judged",
    "render",
    "some",
    "to_csv",
]
