// Text that describes the state in words.

const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

export const frames = (count) => plural(count, "frame");

const DEFAULT_RATE = 25;
const seconds = (time) => `${time.toFixed(2)} s`;

// The time that was asked for, for example "0.12 s".
export const wishText = ({ horizon, rate }) => seconds(horizon / (rate || DEFAULT_RATE));

// The time that the model predicts ahead. It differs from the wish if the steps of the model are longer.
export const aheadText = (state) => (state.step_seconds ? seconds(state.steps * state.step_seconds) : wishText(state));

// The sentence at the top of the page, in parts: [text, class].
export function summary(state) {
  if (state.problem) return [["The source stopped with an error: ", ""], [state.problem, "bad"]];
  if (state.camera && state.step === 0) return [["Waiting for a camera. ", ""], ["Click “Use this camera” and move a little in front of it.", "strong"]];
  if (state.awaits_frames) return [[`Watching the first frames: ${plural(state.awaits_frames, "more frame")} until the first prediction.`, ""]];
  const ahead = [["The model predicts ", ""], [aheadText(state), "guess"], [" ahead. ", ""]];
  if (state.ratio === null) {
    const why = state.n_recent ? "Nothing moves, so there is nothing to predict." : "It is too early to judge it.";
    return [...ahead, [why, ""]];
  }
  if (state.n_recent < state.record) return [...ahead, [`It is too early to judge it: ${state.n_recent} of ${frames(state.record)} were scored.`, ""]];
  const percent = Math.round(100 * Math.abs(1 - state.ratio));
  const than = " than that of repeating the last known frame";
  const result = state.ratio < 0.995 ? [[`${percent}\u00a0%\u00a0smaller`, "good"], [`${than}.`, ""]]
    : state.ratio > 1.005 ? [[`${percent}\u00a0%\u00a0larger`, "bad"], [`${than}, so copying is better at the moment.`, ""]]
      : [["the same", "strong"], [" as that of repeating the last known frame.", ""]];
  const over = `ver the last ${frames(state.n_recent)}, its error is `;
  return [...ahead, [state.ratio < 0.9 ? `It has learned how things move here: o${over}` : `O${over}`, ""], ...result];
}
