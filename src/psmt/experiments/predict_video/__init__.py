"""A film predicted frame by frame as it runs: settings, the run, and what comes out of it."""

from psmt.experiments.predict_video.checkpoint import clear_checkpoints
from psmt.experiments.predict_video.result import FrameSummary, Still, VideoResult, summarise_frames
from psmt.experiments.predict_video.run import Begin, Sink, predict_video
from psmt.experiments.predict_video.settings import FRAME_METHODS, LEARN, SLOW_PEERS, FrameMethod, VideoSettings, extent

__all__ = [
    "FRAME_METHODS",
    "LEARN",
    "SLOW_PEERS",
    "Begin",
    "FrameMethod",
    "FrameSummary",
    "Sink",
    "Still",
    "VideoResult",
    "VideoSettings",
    "clear_checkpoints",
    "extent",
    "predict_video",
    "summarise_frames",
]
