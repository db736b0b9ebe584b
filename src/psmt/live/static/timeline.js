// The timeline: the largest surprise of each moment, the events, and the place of the newest frame. A click seeks.

import { colours, dot, fresh } from "./drawing.js";
import { clock } from "./events.js";

const SHOWN = 600; // seconds of a source without an end
const HIGHEST = 30;
const FOOT = 18;
const NEAR = 7; // pixels between a click and the mark of an event

export class Timeline {
  constructor(canvas, { onSeek, onEvent }) {
    Object.assign(this, { canvas, onSeek, onEvent, width: 1, bins: [], events: [], span: [0, 1], position: 0, duration: null });
    canvas.addEventListener("click", ({ offsetX }) => this.choose(offsetX));
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -5, ArrowRight: 5, PageDown: -30, PageUp: 30 }[event.key];
      if (step === undefined || this.duration === null) return;
      event.preventDefault();
      event.stopPropagation();
      this.onSeek(Math.min(Math.max(this.position + step, 0), this.duration));
    });
  }

  load({ width, bins }) { Object.assign(this, { width, bins }); }

  clear() { this.bins = []; }

  choose(x) {
    const near = this.events.filter((event) => Math.abs(this.x(event.position) - x) < NEAR);
    near.sort((a, b) => Math.abs(this.x(a.position) - x) - Math.abs(this.x(b.position) - x));
    if (near.length) this.onEvent(near[0]);
    else if (this.duration !== null) {
      const share = Math.min(Math.max(x / this.canvas.clientWidth, 0), 1);
      this.onSeek(this.span[0] + share * (this.span[1] - this.span[0]));
    }
  }

  x(position) { return ((position - this.span[0]) / (this.span[1] - this.span[0])) * this.canvas.clientWidth; }

  draw({ position, duration }, events) {
    Object.assign(this, { position, duration, events });
    const span = Math.min(SHOWN, Math.max(60, position));
    this.span = duration === null ? [position - span, position] : [0, duration];
    const { context, width, height } = fresh(this.canvas);
    const ink = colours();
    const floor = height - FOOT;
    const y = (surprise) => floor - (floor - 10) * Math.min(1, Math.log1p(surprise) / Math.log1p(HIGHEST));
    context.fillStyle = ink.edge;
    context.fillRect(0, floor, width, 1);
    context.fillStyle = ink.seen;
    context.globalAlpha = 0.75;
    for (const [bin, surprise] of this.bins) {
      const left = this.x(bin * this.width);
      const wide = Math.max(1, this.x((bin + 1) * this.width) - left - 0.5);
      if (left + wide > 0) context.fillRect(left, y(surprise), wide, floor - y(surprise));
    }
    context.globalAlpha = 1;
    for (const event of events) {
      const colour = event.what === "cut" ? ink.bad : ink.guess;
      context.fillStyle = colour;
      context.fillRect(this.x(event.position) - 0.75, 8, 1.5, floor - 8);
      dot(context, this.x(event.position), 8, 4.5, colour);
    }
    const now = this.x(position);
    context.fillStyle = ink.ink;
    context.fillRect(now - 1, 2, 2, floor - 2);
    context.fillStyle = ink.faint;
    context.textAlign = "left";
    context.fillText(duration === null ? `${clock(span)} ago` : "0:00", 0, height - 3);
    context.textAlign = "right";
    context.fillText(duration === null ? "now" : clock(duration), width, height - 3);
    if (duration !== null && now > 44 && now < width - 44 && position >= 1) {
      context.textAlign = "center";
      context.fillStyle = ink.ink;
      context.fillText(clock(position), now, height - 3);
    }
    this.describe();
  }

  describe() {
    const { canvas, duration, position } = this;
    const seekable = duration !== null;
    canvas.setAttribute("role", seekable ? "slider" : "img");
    canvas.tabIndex = seekable ? 0 : -1;
    canvas.classList.toggle("seekable", seekable);
    if (!seekable) return;
    canvas.setAttribute("aria-valuemin", "0");
    canvas.setAttribute("aria-valuemax", String(Math.round(duration)));
    canvas.setAttribute("aria-valuenow", String(Math.round(position)));
    canvas.setAttribute("aria-valuetext", `${clock(position)} of ${clock(duration)}`);
  }
}
