"""Reports: HTML pages with claims, verdicts, tables and pictures. This package does not depend on the experiments."""

from psmt.report.claim import INCONCLUSIVE, TIE, Claim, Evidence, Judgement, Verdict, all_hold
from psmt.report.page import Answer, Fact, Page, Picture, Section, render
from psmt.report.tables import Cell, Column, Table, csv_parts, to_csv

__all__ = ["INCONCLUSIVE", "TIE", "Claim", "Evidence", "Judgement", "Verdict", "all_hold"]
__all__ += ["Answer", "Cell", "Column", "Fact", "Page", "Picture", "Section", "Table", "csv_parts", "render", "to_csv"]
