"""What is done on an engine, with NumPy arrays in and out: one test then says the same of every engine."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from psmt.coding.dictionary import Atoms, DictionaryStatistics
from psmt.embedding import FollowedEmbedding
from psmt.embedding.moments import WindowMoments
from psmt.recovery import Recovery, recover_next


def operations_on(engine: Any) -> "InNumpy":
    """The stages of the model on an engine."""
    stages = SimpleNamespace(
        atoms=lambda given: Atoms(engine.numpy(given), engine),
        statistics=lambda n_atoms, n_features: DictionaryStatistics(n_atoms, n_features, engine),
        moments=lambda codes: WindowMoments.of(codes, engine),
        moments_from_state=lambda state: WindowMoments(0, engine).set_state(state),
        followed=FollowedEmbedding,
        recovery=lambda embedding, lam, **given: Recovery(embedding, lam, engine=engine, **given),
        recover_next=recover_next,
    )
    return InNumpy(engine, stages)


class InNumpy:
    """An engine, or anything that came from it, that takes and gives NumPy arrays, and so does all that it gives."""

    def __init__(self, engine: Any, own: Any) -> None:
        self._engine, self._own = engine, own

    def __getattr__(self, name: str) -> Any:
        return self._given(getattr(self._own, name))

    def __call__(self, *values: Any, **options: Any) -> Any:
        taken = {name: self._taken(value) for name, value in options.items()}
        return self._given(self._own(*map(self._taken, values), **taken))

    def __len__(self) -> int:
        return len(self._own)

    def _taken(self, value: Any) -> Any:
        if isinstance(value, InNumpy):
            return value._own
        return self._engine.array(value) if isinstance(value, np.ndarray) else value

    def _given(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value
        if isinstance(value, type(self._engine.array(0.0))):
            return self._engine.numpy(value)
        if isinstance(value, dict):
            return {name: self._given(part) for name, part in value.items()}
        if isinstance(value, tuple):
            return getattr(type(value), "_make", tuple)(map(self._given, value))
        return value if value is None or np.isscalar(value) else InNumpy(self._engine, value)
