"""Reports: claims with verdicts, tables and pictures on one page. This package does not depend on the experiments."""

from psmt.report.claim import (
    INCONCLUSIVE,
    TIE,
    Claim,
    Evidence,
    Judgement,
    Verdict,
    all_hold,
    error_ratio_evidence,
    write_interval,
)
from psmt.report.page import Answer, Fact, Page, Picture, Section, render
from psmt.report.tables import Cell, Column, Table, csv_lines, csv_parts, to_csv

__all__ = [
    "INCONCLUSIVE",
    "TIE",
    "Answer",
    "Cell",
    "Claim",
    "Column",
    "Evidence",
    "Fact",
    "Judgement",
    "Page",
    "Picture",
    "Section",
    "Table",
    "Verdict",
    "all_hold",
    "csv_lines",
    "csv_parts",
    "error_ratio_evidence",
    "render",
    "to_csv",
    "write_interval",
]
