// The page: messages of the server fill the panels, and actions of the user are sent to the server.

import { Camera } from "./camera.js";
import { RatioCurve, SurpriseCurve } from "./curves.js";
import { clock, EventList, NAMES } from "./events.js";
import { Graph } from "./graph.js";
import { Atoms, showPatches, Trajectory } from "./patch.js";
import { paintPalette, Strip } from "./pictures.js";
import { Socket } from "./socket.js";
import { Tiles } from "./tiles.js";
import { Timeline } from "./timeline.js";
import { aheadText, frames, summary, wishText } from "./words.js";

const SPAN = 600;
const MESSAGE_STAYS = { good: 6000, bad: 15000 }; // milliseconds
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
const timeline = new Timeline(part("timeline"), { onSeek: seek, onEvent: showEvent });

let state = null;
let points = [];
let epoch = null;
let patch = null;
let patchIsNew = false;
let shownEvent = null;
let picture = null;
let noticed = null;
let spoken = 0;
let drawing = false;
let touched = -Infinity;
let corner = "";
let leaving = 0;
let sought = null;

// One socket for each source. The panels show the source of `shown`, and the controls are for it.
let shown = 0;
const sockets = [];
const ask = (name, value) => sockets[shown].ask(name, value);
const camera = new Camera((bytes) => sockets[camera.source].sendFrame(bytes));
const tiles = new Tiles(part("tiles"), showSource);

paintPalette(part("palette"));

// Messages

const address = (source, name) => (source ? `/${source}/${name}` : `/${name}`);

function connect(source) {
  sockets.push(new Socket(address(source, "ws"), {
    onMessage: (header, payload) => {
      // The first message makes the tiles. While the film is paused, no other one would fill them.
      if (source === shown) onMessage(header, payload);
      tiles.show(source, header, payload);
    },
    onState: (what, reason) => { if (source === shown) onSocketState(what, reason); },
  }));
}

function showSource(source) {
  if (source === shown) return;
  shown = source;
  [epoch, state, noticed] = [null, null, null];
  tiles.mark(shown);
  for (const name of ["events", "scores"]) part(`${name}-csv`).href = address(shown, `${name}.csv`);
  sockets[shown].reopen();
}

function onMessage(header, payload) {
  // While the film is paused, no frame follows that would redraw the atoms.
  if (header.kind === "atoms") atoms.load(payload).then(redraw);
  else if (header.kind === "event") onEvent(header, payload);
  else if (header.kind === "patch") onPatch(header);
  else if (header.kind === "timeline") timeline.load(header);
  else if (header.kind === "frame") onFrame(header, payload);
}

function onFrame(header, payload) {
  if (header.epoch !== epoch) {
    epoch = header.epoch;
    points = [];
    eventList.clear();
    timeline.clear();
    sought = null;
    corner = "";
    if (shownEvent) backToLive();
  }
  if (header.sessions > 1) {
    tiles.fill(header.sessions);
    tiles.mark(shown);
    while (sockets.length < header.sessions) connect(sockets.length);
  }
  state = header;
  if (corner !== String(state.patch_corner)) {
    corner = String(state.patch_corner);
    patch = null;
    graph.clear();
    trajectory.clear();
  }
  points.push(...header.points);
  const oldest = points.length ? points[points.length - 1][0] - SPAN : 0;
  while (points.length && points[0][0] < oldest) points.shift();
  if (payload.length) picture = payload;
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
  document.body.classList.toggle("gone", what !== "open");
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
  timeline.draw(state, eventList.known);
  drawTimelineText();
  drawPatch();
}

function drawVitals() {
  const [height, width] = state.shape;
  part("pictures").style.setProperty("--shape", `${width} / ${height}`);
  part("pictures").classList.toggle("wide", width > 3 * height);
  part("source").title = height === state.original[0] ? "The whole picture" : `The whole picture, reduced from ${state.original[1]} × ${state.original[0]} pixels`;
  put("source", `${state.source}, ${width}\u00a0×\u00a0${height}${state.ended ? ", ended" : state.paused ? ", paused" : ""}`);
  part("lamp").className = state.problem ? "lamp off" : state.paused || state.ended ? "lamp" : "lamp on";
  put("pace", state.pace === null ? "–" : state.pace.toFixed(state.pace < 10 ? 1 : 0));
  const way = (state.camera ? 1 : 0.5) * (sockets[shown].roundTrip || 0);
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
  put("ratio", state.ratio === null ? "–" : state.ratio.toFixed(2));
  part("ratio").className = part("ratio").textContent === "1.00" || state.ratio === null ? "" : state.ratio < 1 ? "good" : "bad";
  const last = points[points.length - 1];
  put("surprise", last && last[2] !== null ? last[2].toFixed(last[2] < 10 ? 1 : 0) : "–");
  put("ahead", `${aheadText(state)} ahead`);
  put("patch-ahead", `in ${aheadText(state)}`);
  part("wait").hidden = state.awaits_frames === 0 || Boolean(shownEvent);
  const blank = state.step === 0;
  put("wait", state.camera && blank ? "The prediction will appear here." : `Starts in ${frames(state.awaits_frames)}`);
  part("first-camera").hidden = !(blank && state.camera === "free" && Camera.possible);
  for (const id of ["square-now", "square-expected"]) part(id).hidden = blank || Boolean(shownEvent);
  part("wrong").classList.toggle("blank", blank);
  const [[rows, columns], [row, column], side] = [state.shape, state.patch_corner, state.patch_side];
  const box = { width: side / columns, height: side / rows, top: row / rows, left: column / columns };
  for (const id of ["square-now", "square-expected"]) {
    for (const [key, length] of Object.entries(box)) part(id).style[key] = `${100 * length}%`;
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
  const wish = wishText({ ...state, horizon: Number(slider.value) });
  const dropping = state.step_seconds && state.steps * state.step_seconds > 1.3 * state.horizon / (state.rate || 25);
  put("horizon-text", dropping ? `${wish} (now ${aheadText(state)})` : wish);
  part("horizon-text").title = dropping ? "Frames are dropped, so one step of the model is longer than this" : "";
  slider.setAttribute("aria-valuetext", `${wish} ahead`);
  fill(part("choice"), state.sources.map((name, number) => [number, name]));
  const chosen = { choice: state.chosen, speed: state.speed, alarms: state.alarms };
  for (const [id, value] of Object.entries(chosen)) if (document.activeElement !== part(id)) part(id).value = value;
  part("speed").disabled = state.duration === null;
  part("choice").disabled = state.sources.length < 2;
  if (!state.camera && camera.running && camera.source === shown) camera.stop();
  part("save").disabled = !state.saves;
  part("save").title = state.saves ? "Save the model to the file given by --save" : "To save the model, start psmt live with --save FILE";
  const button = part("camera");
  button.hidden = !state.camera;
  button.disabled = state.camera === "taken" || !Camera.possible;
  const other = state.camera === "taken" ? "The camera of another page is in use" : "No camera at this address: open localhost";
  put("camera", button.disabled ? other : camera.running ? "Stop this camera" : "Use this camera");
}

function fill(select, options) {
  const known = JSON.stringify(options);
  if (select.dataset.known === known) return;
  select.dataset.known = known;
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
}

function drawTimelineText() {
  if (sought !== null && Math.abs(state.position - sought) < 2) sought = null;
  put("timeline-text", sought !== null ? `Going to ${clock(sought)} …`
    : state.duration === null ? "Click an event to see it again." : "Click to go there, or click an event to see it again.");
}

function drawPatch() {
  put("machine-text", state.awaits_patches
    ? `The method of the paper (PSMT) on the patch in the square. It starts in ${frames(state.awaits_patches)}.`
    : `The method of the paper (PSMT) on the patch in the square. Active atoms: ${patch ? patch.n_active : 0}.`);
  part("machine").classList.toggle("waiting", !patch);
  if (!patch || !patchIsNew) return;
  patchIsNew = false;
  showPatches(part("seen-patch"), part("guess-patch"), patch);
  atoms.show(patch.active, patch.activity);
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
  clearTimeout(leaving);
  // An event stays until the user goes back, and the loss of the server until it is there again.
  if (!["event", "socket"].includes(why)) leaving = setTimeout(hideBanner, bad ? MESSAGE_STAYS.bad : MESSAGE_STAYS.good);
}

function hideBanner() {
  clearTimeout(leaving);
  // A hidden button that keeps the focus would take the next key.
  part("banner-button").blur();
  part("banner").hidden = true;
  // A message may have covered the way back from a replay.
  if (shownEvent) announceReplay();
}

function showEvent(event) {
  shownEvent = event;
  eventList.mark(event);
  strip.show(event.strip, { replay: true });
  part("pictures").classList.add("replaying");
  announceReplay();
  drawSoon();
  part("pictures").scrollIntoView({ block: "nearest" });
}

function announceReplay() {
  notify(`${NAMES[shownEvent.what]} at ${clock(shownEvent.position)}: the frame before, what was expected, and what came.`,
    { why: "event", button: "Back to live", act: backToLive });
}

function backToLive() {
  shownEvent = null;
  eventList.mark(null);
  part("pictures").classList.remove("replaying");
  if (picture) strip.show(picture);
  hideBanner();
  drawSoon();
}

// Actions of the user

function setHorizon(horizon) {
  const value = Math.min(10, Math.max(1, horizon));
  touched = performance.now();
  part("horizon").value = value;
  ask("horizon", value);
  // While paused, no frame follows that would redraw the slider.
  setTimeout(redraw, 700);
}

// A film is read from its start, so going to another time may take seconds.
function seek(seconds) {
  sought = seconds;
  if (shownEvent) backToLive();
  ask("seek", seconds);
  drawSoon();
}

function forget() {
  const dialog = part("forget");
  if (!dialog.open) { dialog.returnValue = "no"; dialog.showModal(); }
}

function fullScreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else part("pictures").requestFullscreen?.().catch(() => notify("This browser does not allow full screen here.", { bad: true, why: "full" }));
}

function movePatch({ currentTarget, clientX, clientY }) {
  if (!state || state.step === 0 || shownEvent) return;
  const { left, top, width, height } = currentTarget.getBoundingClientRect();
  const place = [(clientX - left) / width, (clientY - top) / height];
  ask("patch", place.map((share) => Math.min(1, Math.max(0, Number(share.toFixed(4))))));
}

async function useCamera() {
  if (camera.running) { camera.stop(); drawSoon(); return; }
  try {
    camera.source = shown;
    await camera.start(state.shape);
  } catch (error) {
    notify(`The camera could not be opened: ${error.message}.`, { bad: true, why: "camera" });
  }
}

const actions = {
  pause: () => ask(state && state.paused ? "play" : "pause"),
  step: () => ask("step"),
  reset: forget,
  full: fullScreen,
  save: () => { if (state && state.saves) ask("save"); },
  camera: useCamera,
  "camera-here": useCamera,
};

for (const [id, act] of Object.entries(actions)) part(id).addEventListener("click", act);
part("horizon").addEventListener("input", ({ target }) => setHorizon(Number(target.value)));
for (const [id, control] of Object.entries({ choice: "source", speed: "speed", alarms: "alarms" })) {
  part(id).addEventListener("change", ({ target }) => {
    ask(control, Number(target.value));
    target.blur();
  });
}
part("forget").addEventListener("close", ({ target }) => { if (target.returnValue === "yes") ask("reset"); });
for (const id of ["now", "expected"]) part(id).addEventListener("click", movePatch);

const keys = {
  " ": actions.pause, ".": actions.step, r: forget, f: fullScreen, s: actions.save,
  "[": () => setHorizon(Number(part("horizon").value) - 1), "]": () => setHorizon(Number(part("horizon").value) + 1),
  // Remove the focus too, so that the space bar pauses again.
  Escape: () => { document.activeElement.blur(); if (shownEvent) backToLive(); else hideBanner(); },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || part("forget").open) return;
  const control = event.target.closest?.("button, select, input");
  if (control && event.key === " ") return;
  const act = keys[event.key];
  if (!act || control?.tagName === "SELECT") return;
  event.preventDefault();
  act();
});

connect(0);
window.addEventListener("resize", redraw);
window.addEventListener("themechange", redraw);
