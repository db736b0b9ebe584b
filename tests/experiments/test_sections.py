"""Sections and tables say what the numbers say."""

import pytest

from psmt.evaluation import METHODS
from psmt.experiments.prediction.report import prediction_sections
from psmt.experiments.sweep.report import paper_table, tables
from psmt.experiments.table_1 import PAPER
from psmt.report import Cell

PNG = b"\x89PNG\r\n\x1a\n"


def test_sections_hold_a_figure_and_a_table_per_phase(make_prediction, monkeypatch):
    monkeypatch.setattr("psmt.experiments.prediction.report._png", lambda *_: PNG)
    result = make_prediction(psmt=0.4, copy=0.2, copy_code=0.2)
    *phases, rollouts, starts = prediction_sections(result, {})
    assert [section.title for section in phases] == ["Prediction, phase “calm”", "Prediction, phase “lively”"]
    assert all(section.pictures[0].png == PNG for section in phases)
    rows = {row[0].text: row for row in phases[0].tables[0].rows}
    assert set(rows) == set(METHODS.values())
    assert rows["PSMT"][2] == rows["PSMT"][4] == Cell("2.00", "loses")
    assert rows["copy last patch"][2] == Cell("1")
    assert [table.caption for table in rollouts.tables] == ["Rollouts, phase “calm”", "Rollouts, phase “lively”"]
    assert starts.tables[0].rows[0][0].text in ("copy last patch", "copy last code")  # lowest error first


def test_table_1_is_the_papers_grid_and_names_what_is_missing(make_sweep):
    result = make_sweep({(512, 1024): 0.2, (512, 1280): 0.1}, n_atoms=(512, 1024))
    (table,) = tables(result)
    assert table.columns == paper_table().columns == ("M / H", "2 × M", "2.5 × M", "3 × M")
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["512", "0.200 ± 0.000", "0.100 ± 0.000", "film too short"],
        ["1,024", *3 * ["film too short"]],
    ]
    assert [cell.mark for cell in table.rows[0]] == ["", "", "best", "missing"]


def test_the_papers_own_table_1():
    rows = paper_table().rows
    assert [cell.text for cell in rows[0]] == ["512", "0.925 ± 0.129", "0.734 ± 0.125", "0.425 ± 0.106"]
    assert [[cell.mark for cell in row[1:]] for row in rows] == [["", "", "best"]] * 3
    assert sum(mean for mean, _ in PAPER.values()) == pytest.approx(4.052)
