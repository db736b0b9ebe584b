// Several sources: a small picture of each, with its prediction. A click shows one of them in all panels.

import { NAMES } from "./events.js";

export class Tiles {
  constructor(list, onChoose) {
    Object.assign(this, { list, onChoose, tiles: [] });
  }

  fill(count) {
    if (this.tiles.length === count) return;
    this.list.hidden = false;
    this.tiles = Array.from({ length: count }, (_, k) => this.build(k));
    this.list.replaceChildren(...this.tiles.map(({ item }) => item));
  }

  build(number) {
    const [item, button, canvas, name, score] = ["li", "button", "canvas", "b", "small"].map((kind) => document.createElement(kind));
    button.type = "button";
    button.title = "Show this source in all panels";
    name.textContent = `Source ${number + 1}`; // until its first frame arrives
    button.addEventListener("click", () => this.onChoose(number));
    button.append(canvas, name, score);
    item.append(button);
    return { item, button, canvas, name, score, busy: false, event: "" };
  }

  mark(chosen) {
    this.tiles.forEach(({ button }, k) => button.setAttribute("aria-current", String(k === chosen)));
  }

  async show(number, header, payload) {
    const tile = this.tiles[number];
    if (!tile) return;
    if (header.kind === "event") tile.event = NAMES[header.what].toLowerCase();
    if (header.kind !== "frame") return;
    if (header.n_events === 0) tile.event = "";
    tile.name.textContent = header.source;
    const happened = `${header.n_events} event${header.n_events === 1 ? "" : "s"}${tile.event ? `, the last a ${tile.event}` : ""}`;
    tile.score.textContent = header.problem ? header.problem
      : header.ratio === null ? happened : `${header.ratio.toFixed(2)} × copying, ${happened}`;
    if (tile.busy || !payload.length) return;
    tile.busy = true;
    const picture = await createImageBitmap(new Blob([payload], { type: "image/jpeg" }));
    const width = Math.floor((2 * picture.width) / 3);
    Object.assign(tile.canvas, { width, height: picture.height });
    // The frame and the prediction; the error is only shown above.
    tile.canvas.getContext("2d").drawImage(picture, 0, 0);
    picture.close();
    tile.busy = false;
  }
}
