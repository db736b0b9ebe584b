// The page: messages of the server fill the panels, and actions of the user are sent to the server.

import { Camera } from "./camera.js";
import { RatioCurve, SurpriseCurve } from "./curves.js";
import { clock, EventList, NAMES } from "./events.js";
import { Graph } from "./graph.js";
import { Atoms, showPatches, Trajectory } from "./patch.js";
import { paintPalette, Strip } from "./pictures.js";
import { Socket } from "./socket.js";
import { EXTRAPOLATIONS, frames, horizonText, summary } from "./words.js";

const SPAN = 600;
const PAUSE = "M4 3h3v10H4zM9 3h3v10H9z";
const PLAY = "M4 2.5l9 5.5-9 5.5z";

const part = (id) => document.getElementById(id);
const put = (id, text) => { const element = part(id); if (element.textContent !== text) element.textContent = text; };

const strip = new Strip(part("now"), part("expected"), part("error"));
const ratioCurve = new RatioCurve(part("ratio-curve"));
const surpriseCurve = new SurpriseCurve(part("surprise-curve"), (step) => eventList.chooseStep(step));
const atoms = new Atoms(part("atoms"));
const trajectory = new Trajectory(part("trajectory"));
const graph = new Graph(part("graph"), atoms);
const eventList = new EventList(part("events"), part("no-events"), showEvent);

let state = null;
let points = [];
let epoch = null;
let patch = null;
let patchIsNew = false;
let shownEvent = null;
let noticed = null;
let spoken = 0;
let drawing = false;
let touched = 0;

const socket = new Socket({ onMessage, onState: onSocketState });
const camera = new Camera(socket);

paintPalette(part("palette"));

// Messages

function onMessage(header, payload) {
  // While the film is paused, no frame follows that would redraw the atoms.
  if (header.kind === "atoms") atoms.load(payload).then(redraw);
  else if (header.kind === "event") onEvent(header, payload);
  else if (header.kind === "patch") onPatch(header);
  else if (header.kind === "frame") onFrame(header, payload);
}

function onFrame(header, payload) {
  if (header.epoch !== epoch) {
    epoch = header.epoch;
    points = [];
    patch = null;
    eventList.clear();
    graph.clear();
    trajectory.clear();
    if (shownEvent) backToLive();
  }
  state = header;
  points.push(...header.points);
  const oldest = points.length ? points[points.length - 1][0] - SPAN : 0;
  while (points.length && points[0][0] < oldest) points.shift();
  if (!shownEvent && payload.length) strip.show(payload);
  drawSoon();
}

function onPatch(header) {
  if (patch && header.version !== patch.version) { graph.clear(); trajectory.clear(); }
  patch = header;
  patchIsNew = true;
  graph.update(patch);
  drawSoon();
}

function onEvent(header, payload) {
  eventList.add(header, payload);
  const point = points.find(([step]) => step === header.step);
  if (point) point[3] = header.what;
}

function onSocketState(what, reason) {
  part("lamp").className = what === "open" ? "lamp on" : "lamp off";
  if (what === "open") { if (part("banner").dataset.why === "socket") hideBanner(); return; }
  put("source", "not connected");
  notify(reason ? `The connection was closed: ${reason}.` : "The server does not answer. Trying to reconnect …", { bad: true, why: "socket" });
}

// Drawing

function drawSoon() {
  if (!drawing) { drawing = true; requestAnimationFrame(draw); }
}

// Draw everything, including what has not changed.
function redraw() {
  patchIsNew = true;
  if (state) drawSoon();
}

function draw() {
  drawing = false;
  if (!state) return;
  drawVitals();
  drawFigures();
  drawControls();
  ratioCurve.draw(points);
  surpriseCurve.draw(points);
  drawPatch();
}

function drawVitals() {
  put("source", `${state.source}, ${state.size} × ${state.size}${state.ended ? ", ended" : state.paused ? ", paused" : ""}`);
  part("lamp").className = state.problem ? "lamp off" : state.paused || state.ended ? "lamp" : "lamp on";
  put("pace", state.pace === null ? "–" : state.pace.toFixed(state.pace < 10 ? 1 : 0));
  const way = socket.roundTrip === null ? 0 : (state.camera ? 1 : 0.5) * socket.roundTrip;
  put("latency", String(Math.round(state.latency + way)));
  put("dropped", state.dropped.toLocaleString("en"));
  put("viewers", state.viewers === 1 ? "1 page" : `${state.viewers} pages`);
  if (state.notice && state.notice.number !== noticed) {
    if (noticed !== null || state.notice.number > 0) notify(state.notice.text, { bad: state.notice.bad, why: "notice" });
    noticed = state.notice.number;
  }
}

function drawFigures() {
  const words = summary(state);
  const line = part("lead");
  const text = words.map(([word]) => word).join("");
  if (line.textContent !== text) {
    line.replaceChildren(...words.map(([word, kind]) => {
      if (!kind) return document.createTextNode(word);
      const own = document.createElement(kind === "guess" ? "em" : "strong");
      own.className = kind;
      own.textContent = word;
      return own;
    }));
    if (performance.now() - spoken > 10000) { spoken = performance.now(); put("lead-aloud", text); }
  }
  const better = state.ratio !== null && state.ratio < 1;
  put("ratio", state.ratio === null ? "–" : state.ratio.toFixed(2));
  part("ratio").className = state.ratio === null ? "" : better ? "good" : "bad";
  const last = points[points.length - 1];
  put("surprise", last && last[2] !== null ? last[2].toFixed(last[2] < 10 ? 1 : 0) : "–");
  put("ahead", `${frames(state.horizon)} ahead`);
  put("patch-ahead", `in ${frames(state.horizon)}`);
  part("wait").hidden = state.awaits_frames === 0 || Boolean(shownEvent);
  const blank = state.step === 0;
  put("wait", state.camera && blank ? "The prediction will appear here." : `Starts in ${frames(state.awaits_frames)}`);
  part("first-camera").hidden = !(blank && state.camera === "free" && Camera.possible);
  for (const id of ["square-now", "square-expected"]) part(id).hidden = blank;
  part("wrong").classList.toggle("blank", blank);
  const share = (100 * state.patch_side) / state.size;
  for (const id of ["square-now", "square-expected"]) {
    const { style } = part(id);
    style.width = style.height = `${share}%`;
    style.left = style.top = `${50 - share / 2}%`;
  }
  if (last) {
    part("ratio-curve").setAttribute("aria-label", `Error divided by the error of copying: ${part("ratio").textContent} now`);
    part("surprise-curve").setAttribute("aria-label", `Surprise: ${part("surprise").textContent} times the usual error; ${state.n_events} events so far`);
  }
}

function drawControls() {
  put("pause-text", state.paused ? "Play" : "Pause");
  part("pause-icon").setAttribute("d", state.paused ? PLAY : PAUSE);
  const slider = part("horizon");
  // Do not move the slider while the user does.
  if (performance.now() - touched > 600) slider.value = state.horizon;
  const shown = { ...state, horizon: Number(slider.value) };
  put("horizon-text", horizonText(shown));
  slider.setAttribute("aria-valuetext", `${horizonText(shown)} ahead`);
  const select = part("extrapolation");
  if (!select.options.length) {
    for (const name of state.extrapolations) select.add(new Option(EXTRAPOLATIONS[name] || name, name));
  }
  if (document.activeElement !== select) select.value = state.extrapolation;
  part("save").disabled = !state.saves;
  part("save").title = state.saves ? "Save the model to the file given by --save" : "To save the model, start psmt live with --save FILE";
  part("record").disabled = state.recorded < 1;
  const button = part("camera");
  button.hidden = !state.camera;
  button.disabled = state.camera === "taken" || !Camera.possible;
  const other = state.camera === "taken" ? "The camera of another page is in use" : "No camera at this address: open localhost";
  put("camera", button.disabled ? other : camera.running ? "Stop this camera" : "Use this camera");
}

function drawPatch() {
  put("machine-text", state.awaits_patches
    ? `The method of the paper (PSMT) on the patch at the centre of the frame. It starts in ${frames(state.awaits_patches)}.`
    : `The method of the paper (PSMT) on the patch at the centre of the frame. Active atoms: ${patch ? patch.n_active : 0}.`);
  part("machine").classList.toggle("waiting", !patch);
  if (!patch || !patchIsNew) return;
  patchIsNew = false;
  showPatches(part("seen-patch"), part("guess-patch"), patch);
  atoms.show(patch.active, patch.activity);
  put("patch-rule", patch.rule);
  trajectory.draw(patch);
  graph.draw();
  part("graph").setAttribute("aria-label", `Graph of ${patch.nodes.length} atoms with ${patch.links.length} links`);
}

// Banners

function notify(text, { bad = false, why, button = "Close", act = hideBanner } = {}) {
  const banner = part("banner");
  banner.hidden = false;
  banner.className = bad ? "banner bad" : "banner";
  banner.dataset.why = why;
  put("banner-text", text);
  put("banner-button", button);
  part("banner-button").onclick = act;
}

function hideBanner() { part("banner").hidden = true; }

function showEvent(event) {
  shownEvent = event;
  eventList.mark(event);
  strip.show(event.strip);
  notify(`${NAMES[event.what]} at ${clock(event.seconds)}: the frame, the prediction made from it, and the error.`,
    { why: "event", button: "Back to live", act: backToLive });
  part("pictures").scrollIntoView({ block: "nearest" });
}

function backToLive() {
  shownEvent = null;
  eventList.mark(null);
  hideBanner();
}

// Actions of the user

function setHorizon(horizon) {
  const value = Math.min(10, Math.max(1, horizon));
  touched = performance.now();
  part("horizon").value = value;
  socket.ask("horizon", value);
}

async function record() {
  part("record").disabled = true;
  notify("Making a video of the last minute …", { why: "record" });
  try {
    const answer = await fetch("/record.mp4");
    if (!answer.ok) throw new Error(await answer.text());
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await answer.blob());
    link.download = "psmt-live.mp4";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    notify("The last minute was saved to your downloads as psmt-live.mp4.", { why: "record" });
  } catch (error) {
    notify(`The video could not be made: ${error.message.trim()}`, { bad: true, why: "record" });
  }
  part("record").disabled = false;
}

async function useCamera() {
  if (camera.running) { camera.stop(); drawSoon(); return; }
  try {
    await camera.start(state.size);
  } catch (error) {
    notify(`The camera could not be opened: ${error.message}.`, { bad: true, why: "camera" });
  }
}

const actions = {
  pause: () => socket.ask(state && state.paused ? "play" : "pause"),
  step: () => socket.ask("step"),
  reset: () => socket.ask("reset"),
  save: () => { if (state && state.saves) socket.ask("save"); },
  record,
  camera: useCamera,
  "camera-here": useCamera,
};

for (const [id, act] of Object.entries(actions)) part(id).addEventListener("click", act);
part("horizon").addEventListener("input", ({ target }) => setHorizon(Number(target.value)));
part("extrapolation").addEventListener("change", ({ target }) => { socket.ask("extrapolation", target.value); target.blur(); });

const keys = {
  " ": actions.pause, ".": actions.step, r: actions.reset, m: record, s: actions.save,
  "[": () => setHorizon(Number(part("horizon").value) - 1), "]": () => setHorizon(Number(part("horizon").value) + 1),
  // Remove the focus too, so that the space bar pauses again.
  Escape: () => { document.activeElement.blur(); if (shownEvent) backToLive(); else hideBanner(); },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat && event.key === "r") return;
  const control = event.target.closest?.("button, select, input");
  if (control && event.key === " ") return;
  const act = keys[event.key];
  if (!act || control?.tagName === "SELECT") return;
  event.preventDefault();
  act();
});

window.addEventListener("resize", redraw);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
