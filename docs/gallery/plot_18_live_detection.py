"""
How do I detect events while they happen?
=========================================

A camera glides over leaves. A bird's shadow crosses the picture, a light flashes, and the film cuts to another place.
The model receives one frame after the other, as from a camera, and reports each event at once. Nobody told it what an
event is: it only knows which frames it did not expect.
"""

import matplotlib.pyplot as plt
import numpy as np

from psmt.data import GlideFilm
from psmt.surprise import SurpriseDetector

film = GlideFilm(seed=3, size=48, speed=0.3)
frames = np.stack([film[t] for t in [*range(240), *range(3000, 3060)]])
frames[170:173, 18:26, 16:28] *= 0.8  # the shadow
frames[210] = np.clip(frames[210] + 0.4, 0, 1)  # the light; the cut is at frame 240

# %%
# ``update`` takes a frame and returns an event, or None. The surprise of a frame is relative to the usual errors in
# this film: it stays low while nothing happens, and rises by factors of a thousand. A flash is reported when the old
# picture is back. ``psmt live camera`` does the same in the browser.

detector = SurpriseDetector(alarms_per_hour=1, fps=25)
surprise, events = np.full(len(frames), np.nan), []
for t, frame in enumerate(frames):
    event = detector.update(frame)
    surprise[t] = detector.surprise
    if event is not None:
        events.append(event)
        print(f"frame {event.frame}, {event.time:.1f} s: {event.kind}")

# %%
figure, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
ax.plot(surprise, color="0.4", linewidth=1)
for kind, colour in {"surprise": "#0072b2", "cut": "#d55e00", "flash": "#e69f00"}.items():
    own = [event for event in events if event.kind == kind]
    ax.plot([e.frame for e in own], [e.surprise for e in own], "o", color=colour, markersize=9, label=kind)
ax.set(yscale="log", xlabel="frame", ylabel="surprise", title="Surprise of each frame, and the events")
ax.yaxis.set_major_formatter("{x:g}")
ax.legend(frameon=False, loc="upper left")
