// Frame, prediction and error: one strip of three pictures, drawn when the browser is ready.

const STOPS = [[0, 6, 10, 24], [70, 58, 20, 92], [140, 190, 55, 80], [205, 249, 142, 8], [255, 252, 245, 190]];

export const PALETTE = (() => {
  const table = new Uint8ClampedArray(256 * 3);
  for (let level = 0; level < 256; level += 1) {
    const next = Math.max(1, STOPS.findIndex((stop) => stop[0] >= level));
    const [low, high] = [STOPS[next - 1], STOPS[next]];
    const share = (level - low[0]) / (high[0] - low[0]);
    for (let k = 0; k < 3; k += 1) table[3 * level + k] = low[k + 1] + share * (high[k + 1] - low[k + 1]);
  }
  return table;
})();

export function paintPalette(canvas) {
  const context = canvas.getContext("2d");
  const line = context.createImageData(256, 1);
  for (let level = 0; level < 256; level += 1) {
    line.data.set([PALETTE[3 * level], PALETTE[3 * level + 1], PALETTE[3 * level + 2], 255], 4 * level);
  }
  context.putImageData(line, 0, 0);
}

export class Strip {
  constructor(now, expected, error) {
    this.canvases = [now, expected, error];
    this.contexts = this.canvases.map((canvas) => canvas.getContext("2d", { willReadFrequently: canvas === error }));
    this.busy = false;
    this.next = null;
  }

  // Only the newest strip is decoded; older ones that wait are dropped.
  // The third picture of a replay is a frame, not an error.
  show(jpeg, { replay = false } = {}) {
    this.next = { jpeg, replay };
    if (!this.busy) this.decode();
  }

  async decode() {
    this.busy = true;
    while (this.next) {
      const { jpeg, replay } = this.next;
      this.next = null;
      const picture = await createImageBitmap(new Blob([jpeg], { type: "image/jpeg" }));
      await new Promise(requestAnimationFrame);
      this.draw(picture, replay);
      picture.close();
    }
    this.busy = false;
  }

  draw(picture, replay) {
    const [width, height] = [picture.width / this.canvases.length, picture.height];
    this.canvases.forEach((canvas, k) => {
      if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
      this.contexts[k].drawImage(picture, k * width, 0, width, height, 0, 0, width, height);
    });
    if (replay) return;
    const pixels = this.contexts[2].getImageData(0, 0, width, height);
    const { data } = pixels;
    for (let i = 0; i < data.length; i += 4) {
      const level = 3 * data[i];
      data[i] = PALETTE[level]; data[i + 1] = PALETTE[level + 1]; data[i + 2] = PALETTE[level + 2];
    }
    this.contexts[2].putImageData(pixels, 0, 0);
  }
}

// Paint a square of grey levels, one byte each.
export function paintGrey(canvas, levels, side) {
  if (canvas.width !== side) canvas.width = canvas.height = side;
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(side, side);
  levels.forEach((level, i) => pixels.data.set([level, level, level, 255], 4 * i));
  context.putImageData(pixels, 0, 0);
}
