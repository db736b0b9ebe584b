"""A model that two threads use at once says so, instead of knowing what does not fit together."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

from fuzz.saved_models import pictures, series
from psmt import PSMT, FramePredictor
from psmt.errors import SharedModelError


@pytest.fixture(
    params=[
        lambda: (PSMT(n_atoms=7, window=16, n_components=2, lam=0.1, alpha=0.1, random_state=0), series()),
        lambda: (FramePredictor(), pictures()),
    ],
    ids=["PSMT", "FramePredictor"],
)
def model_and_frames(request):
    return request.param()


def test_a_second_thread_is_refused_and_the_first_goes_on(model_and_frames, tmp_path):
    model, frames = model_and_frames
    model.fit(frames[:-2])
    inside, refused = Event(), Event()

    class Waiting(np.ndarray):
        """A frame that is read once the other thread has tried."""

        def astype(self, *args, **kwargs):
            inside.set()
            assert refused.wait(20)
            return np.asarray(self).astype(*args, **kwargs)

    attempts = [
        lambda: model.update(frames[-1]),
        model.predict,
        lambda: model.fit(frames),
        lambda: model.save(tmp_path / "model"),
        lambda: copy.deepcopy(model),
        lambda: pickle.dumps(model),
    ]
    expected = copy.deepcopy(model).update(frames[-2]).predict()

    def first():
        import psmt.utils.validation as validation

        given = validation.as_array
        validation.as_array = lambda values, name: values if isinstance(values, Waiting) else given(values, name=name)
        try:
            return model.update(frames[-2].view(Waiting)).predict()
        finally:
            validation.as_array = given

    with ThreadPoolExecutor(1) as other:
        going = other.submit(first)
        assert inside.wait(20)
        try:
            for attempt in attempts:
                with pytest.raises(SharedModelError, match="another thread is using this"):
                    attempt()
        finally:
            refused.set()
        assert np.array_equal(going.result(), expected)
    assert np.isfinite(model.update(frames[-1]).predict()).all()  # and then it is anybody's again


def test_an_error_inside_leaves_no_mark(model_and_frames):
    model, frames = model_and_frames
    model.fit(frames)
    with pytest.raises(ValueError, match="shape"):
        model.update(frames[-1][:-1])
    with ThreadPoolExecutor(1) as other:
        assert np.isfinite(other.submit(model.predict).result()).all()


def test_a_copy_that_is_made_inside_is_free(model_and_frames):
    model, frames = model_and_frames
    made = []
    model.fit(frames, progress=lambda *_: made.append(copy.deepcopy(model)))
    assert made
    with ThreadPoolExecutor(1) as other:
        assert other.submit(made[-1].fit, frames).result() is made[-1]
