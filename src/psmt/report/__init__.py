"""Pictures and tables to one page."""

from psmt.report.claims import Claim, all_claims, prediction_claims
from psmt.report.page import Cell, Fact, Page, Picture, Section, Table, render
from psmt.report.reproduction import Film, make_page, make_summary

__all__ = [
    "Cell",
    "Claim",
    "Fact",
    "Film",
    "Page",
    "Picture",
    "Section",
    "Table",
    "all_claims",
    "make_page",
    "make_summary",
    "prediction_claims",
    "render",
]
