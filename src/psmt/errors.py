"""Errors and warnings of psmt."""


class PSMTError(Exception):
    """Base of all errors whose message is one line for the user."""


class FrameSourceError(PSMTError, ValueError):
    """A film, folder, file or array that frames cannot be read from."""


class MissingSourceError(FrameSourceError, FileNotFoundError):
    """A path that does not exist."""


class NotEnoughFramesError(PSMTError, ValueError):
    """A series is too short."""


class SilentCodesError(PSMTError, ValueError):
    """All codes are zero, because the penalty outweighs the frames: a model would predict zeros only."""


class ModelFileError(PSMTError, ValueError):
    """A saved model cannot be read: damaged, foreign, or from a newer version."""


class SharedModelError(PSMTError, RuntimeError):
    """Two threads use one model at the same time, which would make its state inconsistent."""


class DeviceError(PSMTError, ValueError):
    """A device that is unknown, missing, or lacks its software."""


class CacheWarning(RuntimeWarning):
    """Compiled code cannot be cached: everything works, but starts more slowly."""
