// The graph of atoms, drawn as pictures: links attract like springs, and all atoms repel each other.

import { calm, colours, fresh } from "./drawing.js";

export class Graph {
  constructor(canvas, atoms) {
    Object.assign(this, { canvas, atoms, places: new Map(), links: [], active: new Map(), heat: 0 });
  }

  clear() { this.places.clear(); }

  update({ nodes, links, active, activity }) {
    this.active = new Map(active.map((atom, k) => [atom, activity[k]]));
    this.links = links;
    const known = new Set(nodes);
    for (const atom of this.places.keys()) if (!known.has(atom)) this.places.delete(atom);
    let nNew = 0;
    nodes.forEach((atom) => {
      if (this.places.has(atom)) return;
      // New atoms start in a sunflower pattern: evenly spread, and each always at the same place.
      const turn = 2.399963 * atom;
      const radius = 0.11 * Math.sqrt(atom + 0.5);
      this.places.set(atom, { x: radius * Math.cos(turn), y: radius * Math.sin(turn) });
      nNew += 1;
    });
    this.heat = Math.max(this.heat, nNew ? 1 : 0.15);
    // With reduced motion, the layout is finished before it is shown.
    for (let turn = 0; turn < (calm.matches ? 40 : 3); turn += 1) this.relax();
  }

  relax() {
    const places = [...this.places.values()];
    places.forEach((place) => { place.fx = -0.3 * place.x; place.fy = -0.3 * place.y; });
    for (let i = 0; i < places.length; i += 1) {
      for (let j = i + 1; j < places.length; j += 1) {
        const [dx, dy] = [places[i].x - places[j].x, places[i].y - places[j].y];
        const push = 0.022 / (dx * dx + dy * dy + 0.004);
        places[i].fx += push * dx; places[i].fy += push * dy;
        places[j].fx -= push * dx; places[j].fy -= push * dy;
      }
    }
    // Weaker springs for atoms with many links; otherwise they would pull all atoms into one heap.
    const count = new Map();
    for (const atom of this.links.flat()) count.set(atom, (count.get(atom) || 0) + 1);
    const degree = (a, b) => Math.max(count.get(a), count.get(b));
    for (const [a, b] of this.links) {
      const [p, q] = [this.places.get(a), this.places.get(b)];
      if (!p || !q) continue;
      const [dx, dy] = [q.x - p.x, q.y - p.y];
      const pull = 0.5 * (Math.hypot(dx, dy) - 0.24) / degree(a, b);
      p.fx += pull * dx; p.fy += pull * dy; q.fx -= pull * dx; q.fy -= pull * dy;
    }
    for (const place of places) {
      const length = Math.hypot(place.fx, place.fy);
      const step = Math.min(0.12, 0.25 * length * this.heat) / (length || 1);
      place.x += step * place.fx; place.y += step * place.fy;
    }
    this.heat = Math.max(0.12, 0.985 * this.heat);
  }

  draw() {
    const { context, width, height } = fresh(this.canvas);
    const ink = colours();
    // The layout is round and the panel is wide, so stretch it horizontally.
    const [rx, ry] = ["x", "y"].map((axis) => Math.max(0.5, ...[...this.places.values()].map((place) => Math.abs(place[axis]))));
    const high = (height / 2 - 20) / ry;
    const wide = Math.min((width / 2 - 20) / rx, 1.5 * high);
    const left = (place) => width / 2 + place.x * wide;
    const top = (place) => height / 2 + place.y * high;
    // If there are many links, draw them faintly so that they do not hide the atoms.
    const faint = Math.min(0.45, 0.08 + 12 / this.links.length);
    context.lineWidth = 1.4;
    for (const [a, b] of this.links) {
      const [p, q] = [this.places.get(a), this.places.get(b)];
      if (!p || !q) continue;
      const lit = this.active.has(a) && this.active.has(b);
      context.strokeStyle = lit ? ink.seen : ink.faint;
      context.globalAlpha = lit ? 1 : faint;
      context.beginPath();
      context.moveTo(left(p), top(p));
      context.lineTo(left(q), top(q));
      context.stroke();
    }
    const order = [...this.places.entries()].sort(([a], [b]) => this.active.has(a) - this.active.has(b));
    for (const [atom, place] of order) {
      const lit = this.active.has(atom);
      const side = lit ? 24 : 16;
      const [x, y] = [left(place) - side / 2, top(place) - side / 2];
      context.globalAlpha = lit ? 1 : 0.6;
      this.atoms.paint(context, atom, x, y, side);
      context.strokeStyle = lit ? ink.seen : ink.edge;
      context.lineWidth = lit ? 2.5 : 1;
      context.strokeRect(x, y, side, side);
    }
    context.globalAlpha = 1;
  }
}
