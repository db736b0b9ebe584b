"""What a `PSMT` holds: parameters with their constraints, and the fitted state; how both are saved and loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from psmt.coding import SparseCoder
from psmt.embedding import Embedding, FollowedEmbedding, StochasticEmbedding
from psmt.embedding.moments import WindowMoments
from psmt.embedding.stochastic import BATCH_SIZE, MAX_EPOCHS, TOL, check_solver, draw_seed
from psmt.engines import engine_for
from psmt.engines.contract import Engine
from psmt.extrapolation import EXTRAPOLATIONS, Extrapolation, make_extrapolation
from psmt.model.online_estimator import Forecaster, by_one_thread
from psmt.model.paper_options import CONSTRAINTS, Departures
from psmt.numerics.rank import RANK_TOL
from psmt.persistence.model_file import Header, check_prediction, load_model, part, plain
from psmt.persistence.schema import LARGEST_SQUARE, Field, Layout, Size, State, Stateful, under
from psmt.recovery import ACTIVITY_FACTOR
from psmt.selection import Auto, Choice
from psmt.series import Scaling
from psmt.surprise import Aftermath, FrameWatch
from psmt.types import Array
from psmt.utils.constraints import (
    Declared,
    allowing,
    check_parameters,
    choice,
    count,
    each,
    mapping,
    nothing,
    parameter,
    real,
    renamed,
    seed,
    text,
    truth,
)


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
    activity_bound: float | None = parameter(ACTIVITY_FACTOR, CONSTRAINTS["activity_bound"])
    merge_parallel: bool = parameter(True, truth)
    dictionary_from: str = parameter("past", CONSTRAINTS["dictionary_from"])
    solver: str = parameter("closed", choice("closed", "sgd"))
    max_epochs: int = parameter(MAX_EPOCHS, count())
    batch_size: int = parameter(BATCH_SIZE, count())
    tol: float | None = parameter(TOL, allowing(None, real()))
    sparsity: float = parameter(0.0, real())
    coder: SparseCoder | None = None
    random_state: int | np.random.RandomState | None = parameter(None, seed)
    device: str = "cpu"
    dtype: str = "float64"
    ends: bool | Literal["deprecated"] = "deprecated"

    @classmethod
    def literal(cls, **parameters: Any) -> Self:
        """The paper to the letter, except for the given parameters.

        The dictionary is learned from the H frames of the window, D is H x H, V is not regularised, and step 7 has
        neither a bound nor merged columns. What the paper leaves open is as in all models: a singular V is inverted
        in its range, and an atom that does not vary in the window keeps its activity.

        >>> from psmt import PSMT
        >>> model = PSMT.literal(n_atoms=24, window=200)
        >>> model.rank_tol, model.half_stencils, model.activity_bound
        (0.0, True, None)
        """
        return cls(**Departures.literal().parameters | parameters)

    @classmethod
    def for_series(cls, **parameters: Any) -> Self:
        """For series other than films, of any units and length, except for the given parameters.

        They are taken to have no cuts: a sharp change of a brain is part of its dynamics.

        >>> from psmt import PSMT
        >>> model = PSMT.for_series()
        >>> model.standardise, model.alpha, model.window, model.n_atoms, model.extrapolation, model.on_cut
        (True, 'auto', 'auto', 'auto', 'dynamics', 'ignore')
        """
        auto: dict[str, Any] = dict.fromkeys(("alpha", "window", "n_atoms"), "auto")
        return cls(**auto | {"standardise": True, "extrapolation": "dynamics", "on_cut": "ignore"} | parameters)

    @property
    def _half_stencils(self) -> bool:
        return renamed("half_stencils", self.half_stencils, "ends", self.ends)

    @property
    def _engine(self) -> Engine:
        return engine_for(self.device, self.dtype)

    def _check_parameters(self) -> None:
        engine_for(self.device, self.dtype)
        check_parameters(self, self._parameter_constraints)
        check_solver(self.solver, device=self.device, sparsity=self.sparsity)


class FittedState(Parameters):
    """What `fit` learns and `update` continues."""

    coder_: SparseCoder
    moments_: WindowMoments
    followed_: FollowedEmbedding | StochasticEmbedding
    choice_: Choice
    n_components_: int | None
    lam_: float
    window_: int
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    """Only if `fit` was given a table with names."""
    _scaling: Scaling
    _watch: FrameWatch
    _aftermath: Aftermath
    _extrapolation: Extrapolation
    _embedding: Embedding | None
    """That of the present window, once it was needed."""
    _residual: Array
    """The part of the last frame (n_features,) that its code does not explain; zero unless it is carried along."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "moments_")

    @property
    def dictionary_(self) -> Array:
        """Phi (n_atoms, n_features)."""
        return self.coder_.dictionary_

    @property
    def codes_(self) -> Array:
        """The latest codes (window, n_atoms), oldest first."""
        return self._engine.numpy(self.moments_.codes)

    @property
    def embedding_(self) -> Array:
        """P (n_components, n_atoms) of the present window; fewer rows if the rank of the window is smaller."""
        return self._engine.numpy(self._embed().matrix)

    @property
    def surprise_(self) -> float:
        """How unexpected the last frame was, in units of what is usual."""
        check_is_fitted(self, "moments_")
        return self._watch.surprise

    @property
    def cut_(self) -> bool:
        """Whether the last frame began something new."""
        check_is_fitted(self, "moments_")
        return self._watch.cut

    def _embed(self) -> Embedding:
        if self._embedding is None:
            self._embedding = self.followed_.update(self.moments_)
        return self._embedding

    def _start_following(self) -> FollowedEmbedding | StochasticEmbedding:
        names = ["centred", "rank_tol"]
        if self.solver == "sgd":
            names += ["max_epochs", "batch_size", "tol", "sparsity"]
        options = {name: getattr(self, name) for name in names} | {"half_stencils": self._half_stencils}
        if self.solver == "closed":
            return FollowedEmbedding(self.n_components_, **options)
        return StochasticEmbedding(self.n_components_, **options, seed=draw_seed(self.random_state))

    # Saving and loading

    def get_header(self) -> Header:
        """Return the values of a file that are not arrays: parameters, those of the coder, and what was chosen."""
        parameters = plain(self.get_params(deep=False)) | {"coder": None, "half_stencils": self._half_stencils}
        del parameters["ends"]
        return {
            "parameters": parameters,
            "coder": plain(self.coder_.get_params()) | {"alpha": self.coder_.alpha_},
            "coder_given": self.coder is not None,
            "choice": self.choice_.to_json(),
            "feature_names": list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None,
        }

    @by_one_thread
    def get_state(self) -> State:
        """Return all arrays that a copy with the same header needs to continue alike. The model does not change."""
        check_is_fitted(self, "moments_")
        embedding, numpy = self._embed(), self._engine.numpy
        arrays = {
            "dictionary": self.coder_.dictionary_,
            "rest": numpy(self._residual),
            "embedding": numpy(embedding.matrix),
            "roughness": numpy(embedding.eigenvalues),
        }
        for name, own in self._parts.items():
            arrays |= {f"{name}.{key}": value for key, value in own.get_state().items()}
        if self.standardise:
            arrays |= {"scaling.mean": self._scaling.mean, "scaling.scale": self._scaling.scale}
        return arrays

    @property
    def _parts(self) -> dict[str, Stateful]:
        """The parts that have a state of their own, by the prefix of their arrays."""
        parts: dict[str, Stateful] = {
            "moments": self.moments_,
            "extrapolation": self._extrapolation,
            "watch": self._watch,
            "aftermath": self._aftermath,
        }
        return parts | {"descent": self.followed_} if isinstance(self.followed_, StochasticEmbedding) else parts

    @classmethod
    def stored_schema(cls, header: Header, _layouts: Mapping[str, Layout]) -> dict[str, Field]:
        """Return the schema of a file's arrays, or raise where its header is wrong."""
        # A coder is not a value of JSON, and `ends` is the former name of half_stencils.
        own = cls._parameter_constraints | {"coder": nothing, "ends": truth}
        values = {
            "parameters": mapping(own, complete=False),
            "coder": SparseCoder.check_stored,
            "coder_given": truth,
            "choice": Choice.check_stored,
        }
        # Files of psmt 0.1.0 have no names, and no record of frames (the group "watch").
        names = {"feature_names": allowing(None, each(text))} if "feature_names" in header else {}
        mapping(values | names)("header", header)
        model = cls(**_stored_parameters(header))
        window: Size = "n_codes" if isinstance(model.window, str) else model.window
        scaling = {"mean": Field(("n_features",)), "scale": Field(("n_features",), low=np.finfo(float).tiny)}
        return {
            "dictionary": Field(("n_atoms", "n_features")),
            "rest": Field(("n_features",)),
            "embedding": Field(("n_components", "n_atoms"), may_be_empty=True),
            "roughness": Field(("n_components",), low=0.0, high=LARGEST_SQUARE, may_be_empty=True),
            **under("moments.", WindowMoments.schema(window, "n_atoms")),
            **under("extrapolation.", EXTRAPOLATIONS[model.extrapolation].schema()),
            **(under("scaling.", scaling) if model.standardise else {}),
            **under("watch.", FrameWatch.schema("n_features"), group="watch"),
            **under("aftermath.", Aftermath.schema(), group="watch"),
            **(under("descent.", StochasticEmbedding.schema()) if model.solver == "sgd" else {}),
        }

    @classmethod
    def from_stored(cls, header: Header, arrays: State, *, device: str = "cpu", dtype: str = "float64") -> Self:
        """Return the model of a file, on any device."""
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        model = cls(**_stored_parameters(header), **place)
        check_solver(model.solver, device=device, sparsity=model.sparsity)
        model.coder_ = SparseCoder.from_stored(header["coder"], arrays["dictionary"], **place)
        model.coder = model.coder_ if header["coder_given"] else None
        model.n_features_in_ = model.coder_.n_features_in_
        if (names := header.get("feature_names")) is not None:
            if len(names) != model.n_features_in_:
                raise ValueError(f"feature_names has {len(names)} names for {model.n_features_in_} features")
            model.feature_names_in_ = np.array(names, dtype=object)
        model.choice_ = Choice.from_json(header["choice"])
        model.n_components_, model.lam_ = model.choice_.n_components, model.choice_.lam
        for name, chosen in (("n_components", model.n_components_), ("lam", model.lam_)):
            if (given := getattr(model, name)) not in ("auto", chosen):
                raise ValueError(f"{name}={given!r}, but the choice says {chosen!r}")
        model.set_state(arrays)
        check_prediction(model.predict)
        return model

    def set_state(self, state: Mapping[str, NDArray[Any]], /) -> Self:
        """Continue from the state of a model with the same header."""
        engine, n_rows = self._engine, len(state["embedding"])
        if self.n_components_ is not None and n_rows > self.n_components_:
            raise ValueError(f"embedding has {n_rows} rows, more than {self.n_components_} components")
        self.window_ = len(state["moments.codes"])
        self.moments_ = WindowMoments(0, engine)
        self._extrapolation = make_extrapolation(self.extrapolation)
        # Where there is no record of frames, their codes stand for them.
        self._watch = FrameWatch(state["moments.codes"] @ state["dictionary"], self.window_)
        self._aftermath = Aftermath()
        self.followed_ = self._start_following()
        for name, own in self._parts.items():
            if saved := part(state, f"{name}."):
                own.set_state(saved)
        if self.solver == "sgd":
            matrix = state["descent.matrix"]
            if matrix.size and matrix.shape[1] != len(self.dictionary_):
                raise ValueError(f"descent.matrix has shape {matrix.shape}: not a column for each atom")
        self._scaling = Scaling(**part(state, "scaling.")) if self.standardise else Scaling.none(self.n_features_in_)
        self._residual = engine.array(state["rest"])
        self._embedding = Embedding(engine.array(state["embedding"]), engine.array(state["roughness"]))
        return self

    @classmethod
    def load(cls, path: str | PathLike[str], *, device: str = "cpu", dtype: str = "float64") -> Self:
        """The model that `save` wrote; on the same device it predicts the same, bit for bit.

        It can be loaded on any device. A file that is damaged or holds another class raises `ModelFileError`.
        docs/how-to/model-files.md describes the format and its checks.
        """
        return load_model(path, cls, device=device, dtype=dtype)


def _stored_parameters(header: Header) -> dict[str, Any]:
    """Parameters of a header for the constructor; those that an older psmt did not know keep their defaults."""
    parameters = dict(header["parameters"])
    if "ends" in parameters:
        parameters["half_stencils"] = parameters.pop("ends")
    return parameters
