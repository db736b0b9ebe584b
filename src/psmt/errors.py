"""Errors and warnings of psmt."""


class PSMTError(Exception):
    """Base class of errors that users can resolve. The command line prints their message as one line."""


class FrameSourceError(PSMTError, ValueError):
    """Frames cannot be read from a film, folder, file or array."""


class MissingSourceError(FrameSourceError, FileNotFoundError):
    """A path does not exist."""


class NotEnoughFramesError(PSMTError, ValueError):
    """A series has too few frames."""


class SilentCodesError(PSMTError, ValueError):
    """All codes are zero because the sparsity penalty is too large, so a model would predict only zeros."""


class ModelFileError(PSMTError, ValueError):
    """A saved model cannot be read, because it is damaged, not a model, or from a newer version."""


class SharedModelError(PSMTError, RuntimeError):
    """Two threads use one model at the same time, which would make its state inconsistent."""


class DeviceError(PSMTError, ValueError):
    """A device is unknown or missing, or its software is not installed."""


class CacheWarning(RuntimeWarning):
    """Compiled code cannot be cached. Everything works, but each start takes longer."""


class NumericalWarning(RuntimeWarning):
    """A matrix could not be factorised with the requested regularisation, so a stronger regularisation was used."""


class SeriesWarning(UserWarning):
    """A model can learn from this series, but the series is probably not what the user meant to pass."""
