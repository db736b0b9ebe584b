// Text that describes the state in words.

const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

export const frames = (count) => plural(count, "frame");

// For example "3 frames, 0.12 s".
export const horizonText = ({ horizon, rate, pace }) => {
  // If frames are dropped, the model takes fewer and longer steps than the film.
  const perSecond = rate && pace ? Math.min(rate, pace) : rate || pace;
  return perSecond ? `${frames(horizon)}, ${(horizon / perSecond).toFixed(2)} s` : frames(horizon);
};

// The sentence at the top of the page, in parts: [text, class].
export function summary(state) {
  if (state.problem) return [["The source stopped with an error: ", ""], [state.problem, "bad"]];
  if (state.camera && state.step === 0) return [["Waiting for a camera. ", ""], ["Click “Use this camera” and move a little in front of it.", "strong"]];
  if (state.awaits_frames) return [[`Watching the first frames: ${plural(state.awaits_frames, "more frame")} until the first prediction.`, ""]];
  const ahead = [["The model predicts ", ""], [horizonText(state), "guess"], [" ahead. ", ""]];
  if (state.ratio === null) {
    const why = state.n_recent ? "Nothing moves, so there is nothing to predict." : "It is too early to measure the error.";
    return [...ahead, [why, ""]];
  }
  const percent = Math.round(100 * Math.abs(1 - state.ratio));
  const than = " than that of repeating the last known frame";
  const result = state.ratio < 0.995 ? [[`${percent}\u00a0%\u00a0smaller`, "good"], [`${than}.`, ""]]
    : state.ratio > 1.005 ? [[`${percent}\u00a0%\u00a0larger`, "bad"], [`${than}, so copying is better at the moment.`, ""]]
      : [["the same", "strong"], [" as that of repeating the last known frame.", ""]];
  return [...ahead, [`Over the last ${frames(state.n_recent)}, its error is `, ""], ...result];
}

export const EXTRAPOLATIONS = {
  phase: "phase: same motion",
  gain: "gain: learned share",
  linear: "linear: same change",
  hold: "hold: no change",
};
