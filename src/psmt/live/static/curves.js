// Curves of the last frames, on logarithmic scales: the error compared with copying, and surprise.

import { colours, dot, fresh } from "./drawing.js";

const [SHORTEST, LONGEST] = [150, 600];
const LEFT = 34;
const FOOT = 18;

class Curve {
  constructor(canvas, { low, high, ticks }) {
    Object.assign(this, { canvas, low, high, ticks });
  }

  begin(points) {
    const drawn = fresh(this.canvas);
    const last = points.length ? points[points.length - 1][0] : 0;
    // With few points the axis is shorter, so that they are visible.
    const span = Math.min(LONGEST, Math.max(SHORTEST, points.length ? last - points[0][0] : 0));
    const right = drawn.width - 8;
    const y = (value) => {
      const place = Math.log(Math.min(Math.max(value, this.low), this.high) / this.low) / Math.log(this.high / this.low);
      return 8 + (1 - place) * (drawn.height - FOOT - 12);
    };
    const x = (step) => right - ((last - step) / span) * (right - LEFT);
    const ink = colours();
    drawn.context.fillStyle = ink.faint;
    drawn.context.strokeStyle = ink.edge;
    drawn.context.lineWidth = 1;
    drawn.context.textAlign = "right";
    drawn.context.textBaseline = "middle";
    for (const tick of this.ticks) {
      drawn.context.fillText(String(tick), LEFT - 8, y(tick));
      drawn.context.beginPath();
      drawn.context.moveTo(LEFT, y(tick));
      drawn.context.lineTo(right, y(tick));
      drawn.context.stroke();
    }
    drawn.context.textBaseline = "alphabetic";
    drawn.context.fillText("now", right, drawn.height - 3);
    drawn.context.textAlign = "left";
    drawn.context.fillText(`${span} frames ago`, LEFT, drawn.height - 3);
    return { ...drawn, x, y, ink, right };
  }

  line(context, points, x, y, value) {
    context.beginPath();
    let pen = false;
    for (const point of points) {
      const level = value(point);
      if (level === null) { pen = false; continue; }
      if (pen) context.lineTo(x(point[0]), y(level)); else context.moveTo(x(point[0]), y(level));
      pen = true;
    }
    context.stroke();
  }
}

export class RatioCurve extends Curve {
  constructor(canvas) { super(canvas, { low: 0.006, high: 4, ticks: [0.01, 0.03, 0.1, 0.3, 1, 3] }); }

  draw(points) {
    const { context, x, y, ink, right, height } = this.begin(points);
    context.fillStyle = ink.good;
    context.globalAlpha = 0.07;
    context.fillRect(LEFT, y(1), right - LEFT, height - FOOT - 4 - y(1));
    context.globalAlpha = 1;
    context.strokeStyle = ink.ink;
    context.lineWidth = 1.5;
    context.setLineDash([5, 4]);
    context.beginPath();
    context.moveTo(LEFT, y(1));
    context.lineTo(right, y(1));
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = ink.quiet;
    context.fillText("copying", LEFT + 6, y(1) - 6);
    context.strokeStyle = ink.guess;
    context.lineWidth = 2.2;
    context.lineJoin = "round";
    this.line(context, points, x, y, (point) => point[1]);
    const last = points[points.length - 1];
    if (last && last[1] !== null) dot(context, x(last[0]), y(last[1]), 4, ink.guess);
  }
}

export class SurpriseCurve extends Curve {
  constructor(canvas, onChoose) {
    super(canvas, { low: 0.2, high: 60, ticks: [0.3, 1, 3, 10, 30] });
    this.marks = [];
    canvas.addEventListener("click", ({ offsetX }) => {
      const near = this.marks.filter((mark) => Math.abs(mark.x - offsetX) < 14);
      near.sort((a, b) => Math.abs(a.x - offsetX) - Math.abs(b.x - offsetX));
      if (near.length) onChoose(near[0].step);
    });
  }

  draw(points) {
    const { context, x, y, ink, right, height } = this.begin(points);
    this.marks = [];
    let labelled = -Infinity;
    for (const [step, , surprise, mark] of points) {
      if (!mark) continue;
      const colour = mark === "cut" ? ink.bad : ink.guess;
      this.marks.push({ x: x(step), step });
      context.strokeStyle = colour;
      context.lineWidth = mark === "cut" ? 1.6 : 1;
      context.setLineDash(mark === "cut" ? [] : [2, 3]);
      context.beginPath();
      context.moveTo(x(step), 8);
      context.lineTo(x(step), height - FOOT - 4);
      context.stroke();
      context.setLineDash([]);
      dot(context, x(step), y(surprise), 4, colour);
      const atEdge = x(step) > right - 36;
      if (mark !== "surprise" && x(step) - labelled > (atEdge ? 72 : 36)) {
        labelled = x(step);
        context.fillStyle = colour;
        context.textAlign = atEdge ? "right" : "left";
        context.fillText(mark, x(step) + (atEdge ? -5 : 5), 16);
        context.textAlign = "left";
      }
    }
    context.strokeStyle = ink.seen;
    context.lineWidth = 1.6;
    context.lineJoin = "round";
    this.line(context, points, x, y, (point) => point[2]);
  }
}
