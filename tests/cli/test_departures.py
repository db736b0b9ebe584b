"""Departures on the command line: --literal sets them all, and models and tasks get them."""

import json

import pytest

from cli.calls import refused, run
from psmt import PSMT
from psmt.cli.app import COMMANDS, app
from psmt.experiments import film_tasks, window_graphs
from psmt.experiments.film_report import FilmRecord, FilmResults, make_page, make_summary
from psmt.model.paper_options import OURS, Departures

pytestmark = pytest.mark.usefixtures("blank_figures")
LITERAL = Departures.literal()
FILM = "builtin:glide?frames=90&noise=0.2&size=48"
TINY = ["--patch", "4", "--size", "48", "--alpha", "0.3", "--atoms", "12", "--components", "4", "--workers", "1"]
STEP5 = {"half_stencils", "centred", "rank_tol"}
STEP7 = {"activity_bound", "merge_parallel"}


def asked(command, *flags):
    """The departures that a command asks for with these flags, of each experiment."""
    return [own.departures for own in settings(command, *flags).values()]


def settings(command, *flags):
    """The settings of each experiment that a command runs."""
    _, bound, _ = app.parse_args([command, *([] if command == "demo" else [FILM]), "--seed", "3", *flags])
    return COMMANDS[command].job(COMMANDS[command].values(bound.arguments["given"])).settings()


@pytest.mark.parametrize("command", ["sweep", "topology", "reconstruct", "predict", "reproduce", "demo"])
def test_the_letter(command):
    assert set(asked(command)) == {OURS}
    assert set(asked(command, "--literal")) == {LITERAL}


@pytest.mark.parametrize("flags", [[], ["--literal"]])
@pytest.mark.slow
def test_models_get_them(tmp_path, monkeypatch, flags):
    fitted, fit = [], PSMT.fit
    monkeypatch.setattr(PSMT, "fit", lambda self, X, y=None, **how: (fitted.append(self), fit(self, X, y, **how))[1])
    given = [*TINY, "--window", "60", "--start", "70", "--starts", "1", "--horizon", "3", "--lam", "0.1", *flags]
    assert run("predict", FILM, *given, "--out", tmp_path).code == 0
    assert {type(model).__name__ for model in fitted} >= {"Baseline1", "Baseline2", "CopyCode"}
    for model in fitted:
        own = model.get_params()
        assert {name: own[name] for name in OURS.parameters} == (LITERAL if flags else OURS).parameters


@pytest.mark.parametrize(
    ("command", "module", "function", "names"),
    [
        ("sweep", film_tasks, "round_trip", STEP5 | STEP7),
        ("reconstruct", film_tasks, "round_trip", STEP5 | STEP7),
        ("topology", window_graphs, "embed_window", STEP5),
    ],
)
def test_embeddings_and_recoveries_get_them(tmp_path, monkeypatch, command, module, function, names):
    def end_here(*_, **given):
        raise ValueError({name: given[name] for name in sorted(names)})

    monkeypatch.setattr(module, function, end_here)
    for flags, expected in ([], OURS), (["--literal"], LITERAL):
        stderr = run(command, FILM, *TINY, "--window", "40", *flags, "--out", tmp_path).stderr
        # The original transform, which a film is reconstructed by, has no mean taken off.
        given = expected.parameters | ({"centred": False} if command == "reconstruct" else {})
        assert str({name: given[name] for name in sorted(names)}) in stderr


def test_no_result_is_taken_for_one_with_other_departures(tmp_path, monkeypatch):
    calls, inner = [], film_tasks.round_trip
    monkeypatch.setattr(
        film_tasks, "round_trip", lambda *args, **given: (calls.append(given), inner(*args, **given))[1]
    )
    counts = []
    for flags in [], ["--literal"], ["--literal"]:
        assert run("reconstruct", FILM, *TINY, *flags, "--out", tmp_path).code == 0
        counts.append(len(calls))
    assert counts == [1, 2, 2]


def test_the_report_tells_them():
    asked = settings("reproduce", "--literal")
    film = FilmRecord(name="film", checksum="0" * 64, n_frames=90)
    done = FilmResults(command="reproduce", film=film, asked=asked, used={}, notes={}, results={}, paper=True)
    facts = {fact.name: fact.value for fact in make_page(done, {}).facts}
    assert facts["Departures from the paper"] == LITERAL.describe()
    summary = json.loads(make_summary(done, make_page(done, {})))
    assert all(settings["departures"] == LITERAL.parameters for settings in summary["settings"].values())


def test_whole_frames_have_no_letter():
    assert "--literal" in refused(run("predict-video", FILM, "--literal"))
