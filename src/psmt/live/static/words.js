// Sentences that say what the figures mean.

const times = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

export const aheadOf = ({ horizon, rate, pace }) => {
  // Frames that are dropped make the steps of the model longer than those of the film.
  const each = rate && pace ? Math.min(rate, pace) : rate || pace;
  return each ? `${times(horizon, "frame")}, ${(horizon / each).toFixed(2)} s` : times(horizon, "frame");
};

export const frames = (count) => times(count, "frame");

// The sentence over the page, in parts: [text, class].
export function lead(state) {
  if (state.problem) return [["The source broke off: ", ""], [state.problem, "bad"]];
  if (state.camera && state.step === 0) return [["Waiting for a camera. ", ""], ["Choose “Use this camera”, and move a little in front of it.", "strong"]];
  if (state.awaits_frames) return [[`Watching the first frames: ${times(state.awaits_frames, "more frame")} until the first prediction.`, ""]];
  const ahead = [["The model looks ", ""], [aheadOf(state), "guess"], [" ahead. ", ""]];
  if (state.ratio === null) {
    const why = state.n_recent ? "Nothing moves, so there is nothing to predict." : "It is too early to say how well it does.";
    return [...ahead, [why, ""]];
  }
  const percent = Math.round(100 * Math.abs(1 - state.ratio));
  const verdict = state.ratio < 0.995 ? [`${percent}\u00a0%\u00a0less`, "good"] : state.ratio > 1.005 ? [`${percent}\u00a0%\u00a0more`, "bad"] : ["the same", "strong"];
  const end = state.ratio < 0.995 ? ": it has learned how things move here." : state.ratio > 1.005 ? ": repeating would do better at the moment." : ".";
  const measure = verdict[0] === "the same" ? " error as repeating the last known frame" : " error than repeating the last known frame";
  return [...ahead, [`In the last ${times(state.n_recent, "frame")} it made `, ""], verdict, [measure + end, ""]];
}

export const RULES = {
  phase: "phase: turning goes on",
  gain: "gain: a learned share",
  linear: "linear: the same change again",
  hold: "hold: nothing changes",
};
