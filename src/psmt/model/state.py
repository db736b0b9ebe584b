"""State of `PSMT`: all that a fitted model has, how it is written to a file, and how it comes back."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from psmt.coding import SparseCoder
from psmt.embedding import Embedding, FollowedEmbedding, StochasticEmbedding
from psmt.embedding.moments import WindowMoments
from psmt.embedding.stochastic import draw_seed
from psmt.engines import engine_for
from psmt.extrapolation import EXTRAPOLATIONS, Extrapolation, make_extrapolation
from psmt.model.online_estimator import by_one_thread
from psmt.model.parameters import Parameters
from psmt.persistence.model_file import (
    Header,
    check_prediction,
    damage_named,
    part,
    plain,
    read_container,
    write_container,
)
from psmt.persistence.schema import LARGEST_SQUARE, Field, Size, check_state, under
from psmt.selection import Choice
from psmt.series import Scaling
from psmt.surprise import Aftermath, FrameWatch
from psmt.types import Array
from psmt.utils.validation import allowing, each, mapping, nothing, text, truth


class State(Parameters):
    """What `fit` learns and `update` goes on with."""

    coder_: SparseCoder
    moments_: WindowMoments
    followed_: FollowedEmbedding | StochasticEmbedding
    choice_: Choice
    n_components_: int | None
    lam_: float
    window_: int
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    """Only where `fit` was given a table with names."""
    _scaling: Scaling
    _watch: FrameWatch
    _aftermath: Aftermath
    _extrapolation: Extrapolation
    _embedding: Embedding | None
    """None while nobody has asked for that of the present window."""
    _residual: Array
    """What the latest code does not hold of its frame (n_features,), where that is carried along."""

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
        """P (n_components, n_atoms) of the present window; fewer rows while the window's rank is smaller."""
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
        asked: dict[str, Any] = {
            "centred": self.centred,
            "half_stencils": self._half_stencils,
            "rank_tol": self.rank_tol,
        }
        if self.solver == "closed":
            return FollowedEmbedding(self.n_components_, **asked)
        return StochasticEmbedding(
            self.n_components_,
            **asked,
            max_epochs=self.max_epochs,
            batch_size=self.batch_size,
            tol=self.tol,
            sparsity=self.sparsity,
            seed=draw_seed(self.random_state),
        )

    # Keeping it

    @by_one_thread
    def get_state(self) -> tuple[Header, dict[str, NDArray[Any]]]:
        """Everything that a copy needs to go on alike: values for JSON, and arrays. Nothing in the model changes."""
        check_is_fitted(self, "moments_")
        embedding, numpy = self._embed(), self._engine.numpy
        parameters = plain(self.get_params(deep=False)) | {"coder": None, "half_stencils": self._half_stencils}
        del parameters["ends"]
        header = {
            "parameters": parameters,
            "coder": plain(self.coder_.get_params()) | {"alpha": self.coder_.alpha_},
            "coder_given": self.coder is not None,
            "choice": self.choice_.to_json(),
            "feature_names": list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None,
        }
        arrays = {
            "dictionary": self.coder_.dictionary_,
            "rest": numpy(self._residual),
            "embedding": numpy(embedding.matrix),
            "roughness": numpy(embedding.eigenvalues),
            **{f"moments.{name}": value for name, value in self.moments_.state.items()},
            **{f"extrapolation.{name}": value for name, value in self._extrapolation.state.items()},
            **{f"watch.{name}": value for name, value in self._watch.get_state().items()},
            **{f"aftermath.{name}": value for name, value in self._aftermath.get_state().items()},
        }
        if self.standardise:
            arrays |= {"scaling.mean": self._scaling.mean, "scaling.scale": self._scaling.scale}
        if isinstance(self.followed_, StochasticEmbedding):
            arrays |= {f"descent.{name}": value for name, value in self.followed_.state.items()}
        return header, arrays

    @classmethod
    def schema(cls, header: Header) -> dict[str, Field]:
        """What the arrays of `get_state` must be, given its values for JSON, which are checked here."""
        model = cls(**cls._stored_parameters(header))
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
            # Files of psmt 0.1.0 know no frames.
            **under("watch.", FrameWatch.schema("n_features"), group="watch"),
            **under("aftermath.", Aftermath.schema(), group="watch"),
            **(under("descent.", StochasticEmbedding.schema()) if model.solver == "sgd" else {}),
        }

    @classmethod
    def _stored_parameters(cls, header: Header) -> dict[str, Any]:
        """Parameters of a header of which all is checked; what an older psmt did not know has its default."""
        # A coder is no value of JSON, and `ends` is what half_stencils was called before 0.2.
        own = cls._parameter_constraints | {"coder": nothing, "ends": truth()}
        values = {
            "parameters": mapping(own, complete=False),
            "coder": SparseCoder.check_stored,
            "coder_given": truth(),
            "choice": Choice.check_stored,
        }
        # Files of psmt 0.1.0 know no names.
        names = {"feature_names": allowing(None, each(text()))} if "feature_names" in header else {}
        mapping(values | names)("header", header)
        parameters = dict(header["parameters"])
        if "ends" in parameters:
            parameters["half_stencils"] = parameters.pop("ends")
        return parameters

    @classmethod
    def from_state(
        cls, header: Header, arrays: dict[str, NDArray[Any]], *, device: str = "cpu", dtype: str = "float64"
    ) -> Self:
        """The model that `get_state` was taken from, on any device."""
        check_state(cls.schema(header), arrays)
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        coder = SparseCoder.from_stored(header["coder"], arrays["dictionary"], **place)
        model = cls(**cls._stored_parameters(header), **place)
        model._restore(coder, header, arrays)
        return model

    def _restore(self, coder: SparseCoder, header: Header, arrays: dict[str, NDArray[Any]]) -> None:
        """Become as fitted as the model that the state was taken from."""
        self._check_parameters()
        engine = self._engine
        self.coder = coder if header["coder_given"] else None
        self.coder_ = coder
        self.n_features_in_ = coder.n_features_in_
        if (names := header.get("feature_names")) is not None:
            if len(names) != self.n_features_in_:
                raise ValueError(f"feature_names has {len(names)} names for {self.n_features_in_} features")
            self.feature_names_in_ = np.array(names, dtype=object)
        self.choice_ = Choice.from_json(header["choice"])
        self.n_components_, self.lam_ = self.choice_.n_components, self.choice_.lam
        self.window_ = len(arrays["moments.codes"])
        for name, chosen in (("n_components", self.n_components_), ("lam", self.lam_)):
            if (given := getattr(self, name)) not in ("auto", chosen):
                raise ValueError(f"{name}={given!r}, but the choice says {chosen!r}")
        if self.n_components_ is not None and len(arrays["embedding"]) > self.n_components_:
            raise ValueError(
                f"embedding has {len(arrays['embedding'])} rows, more than {self.n_components_} components"
            )
        self.moments_ = WindowMoments.from_state(part(arrays, "moments."), engine)
        self._residual = engine.array(arrays["rest"])
        self._extrapolation = make_extrapolation(self.extrapolation)
        self._extrapolation.state = part(arrays, "extrapolation.")
        # Where there is no record of frames, their codes stand for them.
        self._watch = FrameWatch(arrays["moments.codes"] @ arrays["dictionary"], self.window_)
        self._aftermath = Aftermath()
        if watched := part(arrays, "watch."):
            self._watch.set_state(watched)
            self._aftermath.set_state(part(arrays, "aftermath."))
        self._scaling = Scaling.none(self.n_features_in_)
        if self.standardise:
            self._scaling = Scaling(**part(arrays, "scaling."))
        matrix, eigenvalues = engine.array(arrays["embedding"]), engine.array(arrays["roughness"])
        self._embedding = Embedding(matrix, eigenvalues)
        self.followed_ = self._start_following()
        if isinstance(self.followed_, StochasticEmbedding):
            descent = part(arrays, "descent.")
            if descent["matrix"].size and descent["matrix"].shape[1] != len(coder.dictionary_):
                raise ValueError(f"descent.matrix has shape {descent['matrix'].shape}: not a column for each atom")
            self.followed_.state = descent

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file, whole or not at all. No pickle: a file holds arrays and JSON only.

        Parameters
        ----------
        path : path
            Where the file is.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ModelFileError
            Where the model holds numbers that `load` would refuse.
        """
        header, arrays = self.get_state()
        write_container(path, type(self).__name__, header, arrays, self.schema(header))

    @classmethod
    def load(cls, path: str | PathLike[str], *, device: str = "cpu", dtype: str = "float64") -> Self:
        """The model that `save` wrote, on any device; on that of the saved model it predicts the same, bit for bit.

        Raises `ModelFileError` unless the file is as the model's schema says, see docs/how-to/model-files.md.

        Parameters
        ----------
        path : path
            Where the file is.
        device, dtype : str
            As in the class.

        Returns
        -------
        PSMT

        Raises
        ------
        ModelFileError
            Where the file is damaged, or of another class.
        FileNotFoundError
            Where there is none.
        """
        engine_for(device, dtype)
        header, arrays = read_container(path, cls.__name__, lambda header, _: cls.schema(header))
        with damage_named(path):
            model = cls.from_state(header, arrays, device=device, dtype=dtype)
            check_prediction(model.predict)
        return model
