// The patch model: active atoms, and the path in the two straightest directions.

import { colours, dot, fresh } from "./drawing.js";
import { paintGrey } from "./pictures.js";

const PER_ROW = 8;

// The dictionary, as one picture with all atoms.
export class Atoms {
  constructor(list) {
    this.list = list;
    this.sheet = null;
    this.rows = [];
  }

  async load(png) {
    this.sheet = await createImageBitmap(new Blob([png], { type: "image/png" }));
    this.side = this.sheet.width / PER_ROW;
    this.rows.forEach((row) => { row.atom = -1; });
  }

  paint(context, atom, x, y, side) {
    if (!this.sheet) return;
    const own = this.side;
    context.drawImage(this.sheet, (atom % PER_ROW) * own, Math.floor(atom / PER_ROW) * own, own, own, x, y, side, side);
  }

  show(active, activity) {
    if (!this.sheet) return;
    while (this.rows.length < active.length) this.rows.push(this.newRow());
    const peak = (this.peak = Math.max(0.97 * (this.peak || 0), ...activity, 1e-6));
    this.rows.forEach((row, k) => {
      row.item.hidden = k >= active.length;
      if (row.item.hidden) return;
      if (row.atom !== active[k]) {
        row.atom = active[k];
        row.picture.width = row.picture.height = this.side;
        this.paint(row.picture.getContext("2d"), active[k], 0, 0, this.side);
        row.item.setAttribute("aria-label", `atom ${active[k]}`);
      }
      row.bar.style.width = `${Math.min(100, (100 * activity[k]) / peak)}%`;
      row.number.textContent = activity[k].toFixed(1);
    });
  }

  newRow() {
    const item = document.createElement("li");
    const [picture, rail, bar, number] = ["canvas", "div", "div", "span"].map((kind) => document.createElement(kind));
    bar.className = "bar";
    rail.append(bar);
    item.append(picture, rail, number);
    this.list.append(item);
    return { item, picture, bar, number, atom: -1 };
  }
}

export function showPatches(seen, guess, patch) {
  paintGrey(seen, patch.seen, patch.side);
  paintGrey(guess, patch.expected, patch.side);
}

export class Trajectory {
  constructor(canvas) {
    this.canvas = canvas;
    this.box = null;
  }

  clear() { this.box = null; }

  draw({ trail, ahead }) {
    const { context, width, height } = fresh(this.canvas);
    const ink = colours();
    const box = this.follow([...trail, ...ahead]);
    // The axes have different units: each is scaled to fit, but their scales differ by at most a factor of 3.
    const [across, up] = [(width - 72) / box.width, (height - 72) / box.height];
    const [wide, high] = [Math.min(across, 3 * up), Math.min(up, 3 * across)];
    const x = (point) => width / 2 + 6 + (point[0] - box.x) * wide;
    const y = (point) => height / 2 - 8 - (point[1] - box.y) * high;
    context.fillStyle = ink.faint;
    context.textAlign = "center";
    context.fillText("straightest direction →", width / 2, height - 4);
    context.save();
    context.translate(11, height / 2);
    context.rotate(-Math.PI / 2);
    context.fillText("second straightest →", 0, 0);
    context.restore();
    context.lineCap = "round";
    context.lineWidth = 2.2;
    context.strokeStyle = ink.seen;
    for (let k = 1; k < trail.length; k += 1) {
      context.globalAlpha = 0.12 + 0.88 * (k / trail.length) ** 1.5;
      context.beginPath();
      context.moveTo(x(trail[k - 1]), y(trail[k - 1]));
      context.lineTo(x(trail[k]), y(trail[k]));
      context.stroke();
    }
    context.globalAlpha = 1;
    const now = trail[trail.length - 1];
    context.strokeStyle = ink.guess;
    context.setLineDash([3, 5]);
    context.beginPath();
    context.moveTo(x(now), y(now));
    ahead.forEach((point) => context.lineTo(x(point), y(point)));
    context.stroke();
    context.setLineDash([]);
    const end = ahead[ahead.length - 1];
    dot(context, x(now), y(now), 5, ink.seen);
    // A ring, so that both markers are visible if they coincide.
    context.strokeStyle = ink.guess;
    context.lineWidth = 2.5;
    context.beginPath();
    context.arc(x(end), y(end), 8, 0, 2 * Math.PI);
    context.stroke();
    context.textAlign = "left";
    const under = y(end) > y(now);
    this.label(context, "now", x(now), y(now) + (under ? -12 : 22), ink.seen, width);
    this.label(context, "prediction", x(end), y(end) + (under ? 24 : -14), ink.guess, width);
  }

  label(context, text, x, y, colour, width) {
    context.fillStyle = colour;
    context.font = "600 12px system-ui, sans-serif";
    const half = context.measureText(text).width / 2;
    // An outline in the background colour keeps the text legible over lines.
    context.strokeStyle = colours().card;
    context.lineWidth = 4;
    context.lineJoin = "round";
    const left = Math.min(Math.max(x - half, 20), width - 2 * half - 4);
    context.strokeText(text, left, y);
    context.fillText(text, left, y);
    context.font = "12px system-ui, sans-serif";
  }

  // The visible range grows at once and shrinks slowly, to keep the view steady. It is at most twice as wide as the path.
  follow(points) {
    const ranges = [0, 1].map((k) => {
      const values = points.map((point) => point[k]);
      return [Math.min(...values), Math.max(...values)];
    });
    this.box = (this.box || ranges).map(([low, high], k) => {
      const [least, most] = ranges[k];
      const room = (most - least) / 2;
      return [
        Math.max(least - room, Math.min(least, low + 0.2 * (least - low))),
        Math.min(most + room, Math.max(most, high + 0.2 * (most - high))),
      ];
    });
    const [[left, right], [bottom, top]] = this.box;
    return { x: (left + right) / 2, y: (bottom + top) / 2, width: Math.max(right - left, 1e-6), height: Math.max(top - bottom, 1e-6) };
  }
}
