"""What psmt raises when something outside the program is at fault."""

__all__ = [
    "CacheWarning",
    "FrameSourceError",
    "MissingSourceError",
    "ModelFileError",
    "NotEnoughFramesError",
    "PSMTError",
    "SharedModelError",
    "SilentCodesError",
]


class PSMTError(Exception):
    """Base of all errors that are meant to be read by the user as one line."""


class FrameSourceError(PSMTError, ValueError):
    """A film, folder, file or array that frames cannot be read from."""


class MissingSourceError(FrameSourceError, FileNotFoundError):
    """A path that does not exist."""


class NotEnoughFramesError(PSMTError, ValueError):
    """A series is shorter than what was asked of it."""


class SilentCodesError(PSMTError, ValueError):
    """All codes are zero: the penalty outweighs the frames, and a model would predict nothing but zeros."""


class ModelFileError(PSMTError, ValueError):
    """A saved model cannot be read: damaged, foreign, or from a newer version."""


class SharedModelError(PSMTError, RuntimeError):
    """Two threads use one model at the same time: what it knows would not fit together any more."""


class DeviceError(PSMTError, ValueError):
    """A device to compute on that is unknown, not there, or lacks its software."""


class CacheWarning(RuntimeWarning):
    """Compiled code that cannot be kept: everything works, and starts more slowly."""
