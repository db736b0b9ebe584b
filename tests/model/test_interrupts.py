"""An exception at any line of a method leaves everything as it was or as it would have been.

That is the model, its file, and the settings of the process. The quick test interrupts each method at a few lines, and
the slow one at more. `PSMT_LINES=100000` interrupts at every line.
"""

import gc
import os
import sys
import warnings
from copy import deepcopy

import numba
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import psmt
from psmt import PSMT, FramePredictor, SparseCoder
from psmt.brain import GroupModel, fit_group
from psmt.data import BoldSimulation
from psmt.video import correction

ROOT = psmt.__file__.rsplit("/", 1)[0]
X = np.cos(np.arange(200)[:, None] / 9 + np.arange(6)) + 0.1 * np.random.default_rng(0).standard_normal((200, 6))
FILM = np.random.default_rng(0).random((40, 16, 16), dtype=np.float32)
FILM[1:] = 0.9 * FILM[:-1] + 0.1 * FILM[1:]
COLOUR = np.stack([FILM, 0.5 * FILM, FILM[::-1]], axis=-1)
SMALL = {"n_atoms": 12, "window": 40, "alpha": 0.1, "random_state": 0}

FEW, MANY = 5, 12
"""Lines to interrupt a method at, in the quick test and in the slow one. `PSMT_LINES` overrides both."""


class Interrupts:
    """Raises KeyboardInterrupt at the n-th line of psmt that is executed inside the ``with`` statement."""

    def __init__(self, at):
        self.at, self.seen = at, 0

    def __enter__(self):
        self._former = sys.gettrace()
        sys.settrace(self._calls)
        return self

    def __exit__(self, *exception):
        sys.settrace(self._former)

    def _calls(self, frame, event, arg):
        return self._lines if frame.f_code.co_filename.startswith(ROOT) else None

    def _lines(self, frame, event, arg):
        if event == "line":
            self.seen += 1
            if self.seen == self.at:
                raise KeyboardInterrupt
        return self._lines


def settings():
    """Settings of the process, and the number of its open files."""
    threads = [library["num_threads"] for library in threadpool_info()]
    files = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    return threads, numba.get_num_threads(), np.geterr(), list(warnings.filters), os.getcwd(), files


def psmt_model(**given):
    return lambda: PSMT(**(SMALL | {"n_components": 3, "lam": 0.01} | given)).fit(X[:60])


def tracked():
    """A model whose embedding is tracked."""
    return PSMT(n_atoms=200, window=202, n_components=3, lam=0.01, alpha=0.05, random_state=0).fit(
        np.concatenate([X, X[:40]])[:220]
    )


def coder():
    return SparseCoder(n_atoms=8, alpha=0.1, random_state=0, max_epochs=2).fit(X[:40])


def film(n_frames=23, **given):
    """A model of whole frames, by default one that records a rollout."""
    return lambda: FramePredictor(**given).fit(FILM[:n_frames])


def group():
    scans = BoldSimulation(n_subjects=2, n_frames=80, n_regions=8, n_states=2, seed=0)
    return fit_group([scans.subject(k).values for k in range(2)], tr=2.0, n_atoms=6, n_states=2)


def state(model):
    """What a model is: its parameters and its state."""
    if isinstance(model, SparseCoder):
        return {"dictionary": model.dictionary_, "codes": model.transform(X[:3])}
    own = model.get_state()
    return own if isinstance(model, GroupModel) else own | {"predicted": model.predict(2)}


def future(model):
    """What a copy of the model becomes with one more frame, so that what is not in its state is seen, too."""
    if isinstance(model, FramePredictor):
        return state(deepcopy(model).update((COLOUR if len(model.shape_) == 3 else FILM)[30]))
    if isinstance(model, PSMT):
        return {"predicted": deepcopy(model).update(X[190]).predict(2)}
    return state(model)


def same(one, other):
    return one.keys() == other.keys() and all(
        np.shape(value) == np.shape(other[name]) and np.allclose(value, other[name], rtol=1e-6, atol=1e-6)
        for name, value in one.items()
    )


CASES = {
    "fit": (psmt_model(), lambda model: model.fit(X[20:90])),
    "fit, auto": (psmt_model(lam="auto"), lambda model: model.fit(X[20:90])),
    "update": (psmt_model(), lambda model: model.update(X[60])),
    "update, gain": (psmt_model(extrapolation="gain"), lambda model: model.update(X[60])),
    "update, phase": (psmt_model(extrapolation="phase"), lambda model: model.update(X[60])),
    "update, dynamics": (psmt_model(extrapolation="dynamics"), lambda model: model.update(X[60])),
    "update, tracked": (tracked, lambda model: model.update(X[60])),
    "begin": (psmt_model(), lambda model: model.begin(X[100:110])),
    "partial_fit": (psmt_model(), lambda model: model.partial_fit(X[60:64])),
    "coder: fit": (coder, lambda model: model.fit(X[50:90])),
    "coder: partial_fit": (coder, lambda model: model.partial_fit(X[50:90])),
    "frames: fit": (film(), lambda model: model.fit(FILM[2:6])),
    "frames: update": (film(), lambda model: model.update(FILM[23])),
    "frames: update that starts a rollout": (film(20), lambda model: model.update(FILM[20])),
    "frames: update with a cut": (film(), lambda model: model.update(5 - 3 * FILM[5].T)),
    "frames: update, gain": (film(extrapolation="gain"), lambda model: model.update(FILM[23])),
    "frames: update in colour": (lambda: FramePredictor().fit(COLOUR[:23]), lambda model: model.update(COLOUR[23])),
    "frames: partial_fit": (film(), lambda model: model.partial_fit(FILM[23:25])),
}
FILES = {"file": psmt_model(), "frames: file": film(), "group: file": group}


@pytest.fixture(autouse=True)
def few_pixels(monkeypatch):
    """Let the network of whole frames remember little, so that models are quick to copy and to save."""
    monkeypatch.setattr(correction, "PIXELWISE", correction.PIXELWISE._replace(frames=8, crops=64, batch=64))


def interrupted(act, n_lines, most):
    """Interrupt `act` at lines out of `n_lines`. After each, yield its number; the settings must be those before."""
    most = int(os.environ.get("PSMT_LINES", most))
    lines = np.random.default_rng(n_lines).permutation(n_lines)[:most] + 1
    with threadpool_limits(2, user_api="blas"):
        usual = settings()
        for at in np.sort(lines).tolist():
            try:
                with Interrupts(at):
                    act()
            except KeyboardInterrupt:
                pass
            if settings() != usual:
                gc.collect()  # an open file may be part of a cycle of references
            assert settings() == usual, f"line {at} of {n_lines}"
            yield at
    print(f"interrupted at {len(lines):,} of {n_lines:,} lines")


def count_lines(act):
    act()  # compiles and fills caches
    with Interrupts(-1) as counted:
        act()
    return counted.seen


def interrupt_a_change(name, most):
    made, change = CASES[name]
    blank = made()
    after, before = deepcopy(blank), state(blank)
    change(after)
    outcomes = (before, future(blank)), (state(after), future(after))
    assert not same(before, outcomes[1][0])
    n_lines = count_lines(lambda: change(deepcopy(blank)))
    model, n_done = [deepcopy(blank)], 0
    for at in interrupted(lambda: change(model[0]), n_lines, most):
        found, n_done = state(model[0]), n_done + 1
        done = same(found, outcomes[1][0])
        assert done or same(found, before), f"line {at} of {n_lines}"
        # The same object is interrupted again and again, so what is left in it would add up.
        if done or n_done % 10 == 0:
            assert same(future(model[0]), outcomes[done][1]), f"up to line {at} of {n_lines}"
        if done or "tracked" in name:  # tracking begins again after an interrupt: equal within its tolerance alone
            model[0] = deepcopy(blank)
    assert same(future(model[0]), outcomes[0][1])
    assert same(state(change(model[0])), outcomes[1][0])


def interrupt_a_file(name, most, folder):
    model = FILES[name]()
    path = folder / "m"
    model.save(path)
    former = path.read_bytes()
    before = state(model)
    for at in interrupted(lambda: model.save(path), count_lines(lambda: model.save(path)), most):
        assert os.listdir(folder) == ["m"], f"save, line {at}"
        assert path.read_bytes() == former or same(state(type(model).load(path)), before), f"save, line {at}"
        assert same(state(model), before), f"save, line {at}"
    found = []
    load = lambda: found.append(type(model).load(path))  # noqa: E731
    for _ in interrupted(load, count_lines(load), most):
        assert path.read_bytes() == former
    assert all(same(state(one), before) for one in found)


def cases(names):
    """The lines of each case in the slow test, and those of some cases in the quick one."""
    quick = {"fit", "update", "partial_fit", "coder: fit", "frames: update", "file"}
    few = [pytest.param(name, FEW, id=name) for name in names if name in quick]
    return few + [pytest.param(name, MANY, id=f"{name}, {MANY} lines", marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize(("name", "most"), cases(CASES))
def test_an_interrupted_change_has_happened_or_not(name, most):
    interrupt_a_change(name, most)


@pytest.mark.parametrize(("name", "most"), cases(FILES))
def test_an_interrupted_save_or_load_changes_nothing(name, most, tmp_path):
    interrupt_a_file(name, most, tmp_path)
