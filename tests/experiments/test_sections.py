"""Sections and tables say what the numbers say."""

import pytest

from psmt.evaluation import METHODS
from psmt.experiments.prediction.report import prediction_sections
from psmt.experiments.sweep.report import details_table, paper_table, tables
from psmt.experiments.table_1 import PAPER
from psmt.report import Cell

PNG = b"\x89PNG\r\n\x1a\n"


def test_sections_hold_a_figure_and_a_table_per_phase(make_prediction):
    result = make_prediction(psmt=0.4, copy=0.2, copy_code=0.2)
    sections = prediction_sections(result, [PNG + b"1", PNG + b"2"], PNG + b"3")
    assert [section.title for section in sections[:2]] == ["Prediction, phase “calm”", "Prediction, phase “lively”"]
    assert [section.pictures[0].png for section in sections[:2]] == [PNG + b"1", PNG + b"2"]
    rows = {row[0].text: row for row in sections[0].tables[0].rows}
    assert set(rows) == set(METHODS.values())
    assert rows["PSMT"][3] == rows["PSMT"][5] == Cell("2.00", "loses")
    assert rows["copy last patch"][5] == Cell("1")
    assert [table.caption for table in sections[2].tables] == ["Rollouts, phase “calm”", "Rollouts, phase “lively”"]
    assert "From frame to frame a pixel changes by" in sections[0].text[0]


def test_all_starts_and_nulls_have_a_section(make_prediction):
    nulls = {"mean_code": 0.5}
    result = make_prediction(nulls, psmt=0.4, copy=0.2, copy_code=0.2, baseline2=0.8)
    section = prediction_sections(result, [PNG, PNG], PNG + b"3")[-1]
    assert section.pictures[0].png == PNG + b"3"
    effects, means = section.tables
    rows = {row[0].text: [cell.text for cell in row] for row in effects.rows}
    assert rows["PSMT against Baseline 2, vs code"][1] == "0.50 (0.50 to 0.50)"
    assert rows["PSMT against Baseline 2, vs code"][4:6] == ["−0.69", "8 of 8"]
    assert rows["PSMT against Baseline 2, vs code"][-1] == "holds"
    assert rows["PSMT against mean code, vs code"][2:4] == ["–", "–"]
    assert means.columns == ["method", "the film", "its frames shuffled", "noise of its spectrum"]
    best = {row[0].text: [cell.mark for cell in row[1:]] for row in means.rows}
    assert best["copy last code"] == ["best", "", ""]
    assert best["mean code"] == ["", "best", "best"]


def test_table_1_is_the_papers_grid_and_names_what_is_missing(make_sweep):
    result = make_sweep({(512, 1024): 0.2, (512, 1280): 0.1}, n_atoms=(512, 1024))
    (table,) = tables(result)
    assert table.columns == paper_table().columns == ("M / H", "2 × M", "2.5 × M", "3 × M")
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["512", "0.200 ± 0.000", "0.100 ± 0.000", "film too short"],
        ["1,024", *3 * ["film too short"]],
    ]
    assert [cell.mark for cell in table.rows[0]] == ["", "", "best", "missing"]
    assert [[cell.text for cell in row[:3]] for row in details_table(result).rows] == [
        ["0.1, 512, 1,024", "36", "0.200"],
        ["0.1, 512, 1,280", "28", "0.100"],
    ]


def test_the_papers_own_table_1():
    rows = paper_table().rows
    assert [cell.text for cell in rows[0]] == ["512", "0.925 ± 0.129", "0.734 ± 0.125", "0.425 ± 0.106"]
    assert [[cell.mark for cell in row[1:]] for row in rows] == [["", "", "best"]] * 3
    assert sum(mean for mean, _ in PAPER.values()) == pytest.approx(4.052)
