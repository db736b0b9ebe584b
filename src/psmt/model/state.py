"""Parameters of `PSMT` with their constraints, its fitted state, and saving and loading."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy, deepcopy
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from psmt.changes import FrameWatch
from psmt.coding import SparseCoder
from psmt.embedding import Embedding, FollowedEmbedding
from psmt.embedding.followed import EMBEDDING_TOL
from psmt.embedding.moments import ROUNDING, WindowMoments
from psmt.engines import engine_for
from psmt.engines.contract import Engine
from psmt.extrapolation import EXTRAPOLATIONS, Extrapolation, make_extrapolation
from psmt.model.intervals import ForecastErrors
from psmt.model.online_estimator import Forecaster, by_one_thread
from psmt.model.paper_options import CONSTRAINTS, Departures
from psmt.model.tables import TableForm
from psmt.numerics.rank import RANK_TOL
from psmt.persistence.model_file import Header, check_prediction, load_model, plain
from psmt.persistence.schema import LARGEST_SQUARE, Field, Layout, Size, State, Stateful, joined, part, restore, under
from psmt.recovery import ACTIVITY_FACTOR
from psmt.selection import Auto, Choice
from psmt.series import Scaling
from psmt.types import Array
from psmt.utils.constraints import (
    Constraint,
    Declared,
    allowing,
    by_name,
    check_parameters,
    choice,
    count,
    each,
    mapping,
    nothing,
    parameter,
    real,
    seed,
    text,
    truth,
)


@by_name
@dataclass(kw_only=True, eq=False, repr=False)
class Parameters(Forecaster):
    """Parameters of `PSMT`, whose docstring explains them."""

    _parameter_constraints = Declared()

    n_atoms: int | Auto = parameter(512, allowing("auto", count()))
    window: int | Auto = parameter(1536, allowing("auto", count(3)))
    n_components: int | Auto | None = parameter("auto", allowing(None, allowing("auto", count())))
    alpha: float | Auto = parameter(1.0, allowing("auto", real(open_bound=True)))
    lam: float | Auto = parameter("auto", allowing("auto", real()))
    # Extrapolations may be added after this module was imported.
    extrapolation: str = parameter("linear", lambda name, value: choice(*EXTRAPOLATIONS)(name, value))
    standardise: bool = parameter(False, truth)
    on_cut: str = parameter("hold", CONSTRAINTS["on_cut"])
    centred: bool = parameter(True, truth)
    half_stencils: bool = parameter(False, truth)
    rank_tol: float = parameter(RANK_TOL, CONSTRAINTS["rank_tol"])
    embedding_tol: float = parameter(EMBEDDING_TOL, real())
    activity_bound: float | None = parameter(ACTIVITY_FACTOR, CONSTRAINTS["activity_bound"])
    merge_parallel: bool = parameter(True, truth)
    dictionary_from: str = parameter("past", CONSTRAINTS["dictionary_from"])
    coder: SparseCoder | None = None
    random_state: int | np.random.RandomState | None = parameter(None, seed)
    device: str = "cpu"
    dtype: str = "float64"

    @classmethod
    def literal(cls, **parameters: Any) -> Self:
        """Return a model with the choices of the paper, except for the given `parameters`.

        The dictionary is learned from the frames of the window. Second differences have half stencils at both ends. The
        covariance V of the codes is not regularised. Step 7 neither bounds the code nor merges parallel atoms, so with
        ``lam=0`` predictions may be thousands of times larger than the data. Where the paper leaves something open, the
        model behaves like any `PSMT`: a singular V is inverted on its range, and constant atoms keep their activity.

        >>> from psmt import PSMT
        >>> model = PSMT.literal(n_atoms=24, window=200)
        >>> model.rank_tol, model.half_stencils, model.activity_bound
        (0.0, True, None)
        """
        return cls(**Departures.literal().parameters | parameters)

    @classmethod
    def for_series(cls, **parameters: Any) -> Self:
        """Return a model with defaults for series in any units that are not films. `parameters` replace defaults.

        Cuts are ignored, because a sharp change of such a series is usually part of its dynamics.

        >>> from psmt import PSMT
        >>> model = PSMT.for_series()
        >>> model.standardise, model.alpha, model.window, model.n_atoms, model.extrapolation, model.on_cut
        (True, 'auto', 'auto', 'auto', 'dynamics', 'ignore')
        """
        auto: dict[str, Any] = dict.fromkeys(("alpha", "window", "n_atoms"), "auto")
        return cls(**auto | {"standardise": True, "extrapolation": "dynamics", "on_cut": "ignore"} | parameters)

    @property
    def _engine(self) -> Engine:
        return engine_for(self.device, self.dtype)

    def _check_parameters(self) -> None:
        engine_for(self.device, self.dtype)
        check_parameters(self, self._parameter_constraints)


LARGEST_UNIT = 1e120
"""Largest number in frames that are standardised, chosen so that its square is finite."""


class FittedState(Parameters):
    """Base class of `PSMT` with the state that `fit` learns and `update` changes."""

    coder_: SparseCoder
    moments_: WindowMoments
    followed_: FollowedEmbedding
    choice_: Choice
    n_components_: int | None
    lam_: float
    window_: int
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    """Set only if `fit` was given a table with column names."""
    _scaling: Scaling
    _watch: FrameWatch
    _extrapolation: Extrapolation
    _embedding: Embedding | None
    """The embedding of the present window, or None if it has not been needed yet."""
    _residual: Array
    """The part of the last frame (n_features,) that its code does not explain. It is zero if this part is not used."""

    _intervals: ForecastErrors
    """Walk-forward errors, which are recorded from the first request of an interval on."""
    _forecast: Array | None = None
    """The next frames (steps, n_features) in standardised units, if they were predicted from the present state."""
    _table: TableForm | None = None  # form of the table that `fit` was given, or None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "moments_")

    def _keep(self) -> Callable[[], None]:
        """Return a function that restores the present state. It computes again what would be slow to copy."""
        rule, moments = self._extrapolation, self.moments_.keep()
        kept = {name: self.__dict__[name] for name in ("_scaling", "_embedding", "_residual")}
        kept |= {"_intervals": copy(self._intervals), "_forecast": self._forecast, "_table": self._table}
        kept |= {"_watch": copy(self._watch), "_extrapolation": deepcopy(rule) if rule.adaptive else copy(rule)}

        def restore() -> None:
            self.__dict__.update(kept, moments_=moments(), followed_=self._start_following())

        return restore

    @property
    def dictionary_(self) -> Array:
        """Return the dictionary Phi (n_atoms, n_features)."""
        return self.coder_.dictionary_

    @property
    def codes_(self) -> Array:
        """Return the latest codes (window, n_atoms), oldest first."""
        return self._engine.numpy(self.moments_.codes)

    @property
    def embedding_(self) -> Array:
        """Return the embedding matrix P of the window (n_components, n_atoms), with fewer rows if V has lower rank."""
        return self._engine.numpy(self._embed().matrix)

    @property
    def surprise_(self) -> float:
        """Return the surprise of the last frame. It is the error of a simple prediction divided by the usual error."""
        check_is_fitted(self, "moments_")
        return self._watch.surprise

    @property
    def cut_(self) -> bool:
        """Return whether the last frame began a new scene."""
        check_is_fitted(self, "moments_")
        return self._watch.cut

    def _embed(self) -> Embedding:
        if self._embedding is None:
            self._embedding = self.followed_.update(self.moments_)
        return self._embedding

    def _start_following(self) -> FollowedEmbedding:
        options = {name: getattr(self, name) for name in ("centred", "rank_tol", "half_stencils")}
        return FollowedEmbedding(self.n_components_, **options, tol=self.embedding_tol)

    # Saving and loading

    def get_header(self) -> Header:
        """Return all saved values that are not arrays: parameters, parameters of the coder, and chosen values."""
        parameters = plain(self.get_params(deep=False)) | {"coder": None}
        return {
            "parameters": parameters,
            "coder": plain(self.coder_.get_params()) | {"alpha": self.coder_.alpha_},
            "coder_given": self.coder is not None,
            "choice": self.choice_.to_json(),
            "feature_names": list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None,
            "table": self._table and self._table.to_json(),
        }

    @by_one_thread
    def get_state(self) -> State:
        """Return all arrays that a model with the same `get_header` needs to continue exactly as this one."""
        check_is_fitted(self, "moments_")
        embedding, numpy = self._embed(), self._engine.numpy
        arrays = {
            "dictionary": self.coder_.dictionary_,
            "rest": numpy(self._residual),
            "embedding": numpy(embedding.matrix),
            "roughness": numpy(embedding.eigenvalues),
        }
        if self.standardise:
            scaling = self._scaling
            rest = np.broadcast_to(scaling.rest, scaling.mean.shape)
            arrays |= {"scaling.mean": scaling.mean, "scaling.scale": scaling.scale, "scaling.rest": np.array(rest)}
        return arrays | joined(self._parts)

    @property
    def _parts(self) -> dict[str, Stateful]:
        """Return the components that save their own state, keyed by the prefix of their array names."""
        parts: dict[str, Stateful] = {
            "moments.": self.moments_,
            "extrapolation.": self._extrapolation,
            "watch.": self._watch,
        }
        if self._intervals.n_ahead:
            parts["intervals."] = self._intervals
        return parts

    @classmethod
    def stored_schema(cls, header: Header, layouts: Mapping[str, Layout]) -> dict[str, Field]:
        """Return the schema that the arrays of a model file must match. Raise an error if the header is invalid."""
        # JSON cannot store a coder.
        own = cls._parameter_constraints | {"coder": nothing} | _FORMER
        values = {
            "parameters": mapping(own, complete=False),
            "coder": SparseCoder.check_stored,
            "coder_given": truth,
            "choice": Choice.check_stored,
        }
        # Files of psmt 0.1.0 have no feature names and no statistics of frames (the group "watch").
        names = {"feature_names": allowing(None, each(text)), "table": allowing(None, TableForm.check_stored)}
        mapping(values | {name: check for name, check in names.items() if name in header})("header", header)
        model = cls(**_stored_parameters(header))
        window: Size = "n_codes" if isinstance(model.window, str) else model.window
        offset = Field(("n_features",), low=-LARGEST_UNIT, high=LARGEST_UNIT)
        scaling = {
            "mean": offset,
            "scale": offset._replace(low=np.finfo(float).tiny),
            "rest": offset._replace(group="rest"),  # missing in files of psmt 0.2
        }
        watch = under("watch.", FrameWatch.schema("n_features"), group="watch")
        if "watch.last" in layouts:  # psmt 0.2 also saved how long the last code had been held
            held = Field((4,), low=0.0, high=LARGEST_SQUARE)
            watch = under("watch.", FrameWatch.former_schema("n_features")) | {"aftermath.figures": held}
        return {
            "dictionary": Field(("n_atoms", "n_features")),
            "rest": Field(("n_features",)),
            "embedding": Field(("n_components", "n_atoms"), may_be_empty=True),
            "roughness": Field(("n_components",), low=0.0, high=LARGEST_SQUARE, may_be_empty=True),
            **under("moments.", WindowMoments.schema(window, "n_atoms")),
            **under("extrapolation.", EXTRAPOLATIONS[model.extrapolation].schema()),
            **(under("scaling.", scaling) if model.standardise else {}),
            **watch,
            **(under("intervals.", ForecastErrors.schema("n_features")) if "intervals.errors" in layouts else {}),
        }

    @classmethod
    def from_stored(cls, header: Header, arrays: State, *, device: str = "cpu", dtype: str = "float64") -> Self:
        """Return the model with the header and arrays of a file, on the given device and with the given precision."""
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        model = cls(**_stored_parameters(header), **place)
        model.coder_ = SparseCoder.from_dictionary(arrays["dictionary"], **place).set_params(**header["coder"])
        model.coder = model.coder_ if header["coder_given"] else None
        model.n_features_in_ = model.coder_.n_features_in_
        if (names := header.get("feature_names")) is not None:
            if len(names) != model.n_features_in_:
                raise ValueError(f"feature_names has {len(names)} names for {model.n_features_in_} features")
            model.feature_names_in_ = np.array(names, dtype=object)
        model._table = TableForm.from_json(header.get("table"))
        model.choice_ = Choice.from_json(header["choice"])
        model.n_components_, model.lam_ = model.choice_.n_components, model.choice_.lam
        for name, chosen in (("n_components", model.n_components_), ("lam", model.lam_)):
            if (given := getattr(model, name)) not in ("auto", chosen):
                raise ValueError(f"{name}={given!r}, but the choice says {chosen!r}")
        model.set_state(arrays)
        check_prediction(model.predict)
        return model

    def set_state(self, state: Mapping[str, NDArray[Any]], /) -> Self:
        """Restore a state from `get_state` of this model, or of a model with the same `get_header`. Return self."""
        engine, n_rows = self._engine, len(state["embedding"])
        if self.n_components_ is not None and n_rows > self.n_components_:
            raise ValueError(f"embedding has {n_rows} rows, more than {self.n_components_} components")
        self.window_ = len(state["moments.codes"])
        self.moments_ = WindowMoments(0, engine)
        self._extrapolation = make_extrapolation(self.extrapolation)
        # If the file has no statistics of frames, they are computed from decoded codes.
        self._watch = FrameWatch(state["moments.codes"] @ state["dictionary"], self.window_)
        self.followed_ = self._start_following()
        n_ahead = state["intervals.errors"].shape[1] if "intervals.errors" in state else 0
        self._intervals, self._forecast = ForecastErrors(n_ahead, self.n_features_in_), None
        # Files of psmt 0.1.0 and extrapolations that learn nothing have no arrays of some parts.
        restore({prefix: own for prefix, own in self._parts.items() if part(state, prefix)}, state)
        if self.half_stencils and self.moments_.window.seams:
            raise ValueError("half_stencils=True is for one series, and the window holds several")
        self._scaling = Scaling(**part(state, "scaling.")) if self.standardise else Scaling.none(self.n_features_in_)
        if np.any(np.abs(self._scaling.rest) > ROUNDING * (np.abs(self._scaling.mean) + self._scaling.scale)):
            raise ValueError("scaling.rest is larger than a rounding error of scaling.mean")
        self._residual = engine.array(state["rest"])
        self._embedding = Embedding(engine.array(state["embedding"]), engine.array(state["roughness"]))
        return self

    @classmethod
    def load(cls, path: str | PathLike[str], *, device: str = "cpu", dtype: str = "float64") -> Self:
        """Return the model that `save` wrote, on any device. On the device that saved it, predictions are identical.

        `ModelFileError` is raised if the file is damaged or holds another class. docs/how-to/model-files.md describes
        the format and its checks.
        """
        return load_model(path, cls, device=device, dtype=dtype)


_FORMER: dict[str, Constraint] = {
    "ends": truth,
    "solver": choice("closed", "sgd"),
    "max_epochs": count(),
    "batch_size": count(),
    "tol": allowing(None, real()),
    "sparsity": real(),
}
"""Parameters of psmt 0.1 and 0.2: `ends` is half_stencils now, and the others belonged to ``solver='sgd'``."""


def _stored_parameters(header: Header) -> dict[str, Any]:
    """Return the constructor parameters in a file's header. Parameters that an older file lacks keep their defaults."""
    parameters = dict(header["parameters"])
    if parameters.get("solver") == "sgd":
        raise ValueError("solver='sgd' was removed in psmt 0.3; fit the model again: the closed form is its minimum")
    former = {name: parameters.pop(name) for name in _FORMER if name in parameters}
    return parameters | ({"half_stencils": former["ends"]} if "ends" in former else {})
