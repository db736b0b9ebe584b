// The list of events (cuts, flashes, surprises), each with the pictures of its time.

const MOST = 40;
export const NAMES = { cut: "Cut", flash: "Flash", surprise: "Surprise" };

// Larger numbers only say how still the film was before.
const ratio = (surprise) => surprise === null ? "–" : surprise > 999 ? "over 999" : String(Math.round(surprise));

export const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

export class EventList {
  constructor(list, empty, onChoose) {
    Object.assign(this, { list, empty, onChoose, known: [] });
  }

  clear() {
    this.known = [];
    this.list.replaceChildren();
    this.empty.hidden = false;
  }

  async add(header, strip) {
    // A cut may turn out to be a flash.
    const earlier = this.known.find((one) => one.number === header.number);
    if (earlier) { earlier.what = header.what; earlier.title.data = NAMES[header.what]; return; }
    const event = { ...header, strip: strip.slice() };
    const [item, button, picture, text, small] = ["li", "button", "canvas", "span", "small"].map((kind) => document.createElement(kind));
    button.type = "button";
    event.title = document.createTextNode(NAMES[header.what]);
    small.textContent = `at ${clock(header.position)}, ${ratio(header.surprise)} × usual`;
    text.append(event.title, small);
    button.append(picture, text);
    button.addEventListener("click", () => this.onChoose(event));
    item.append(button);
    event.button = button;
    this.known.push(event);
    this.list.prepend(item);
    this.empty.hidden = true;
    if (this.known.length > MOST) { this.known.shift(); this.list.lastElementChild.remove(); }
    const bitmap = await createImageBitmap(new Blob([event.strip], { type: "image/jpeg" }));
    const [wide, side] = [bitmap.width / 3, Math.min(bitmap.width / 3, bitmap.height)];
    picture.width = picture.height = 68;
    // The middle of the last picture, which is the true frame.
    picture.getContext("2d").drawImage(bitmap, 2 * wide + (wide - side) / 2, (bitmap.height - side) / 2, side, side, 0, 0, 68, 68);
    bitmap.close();
  }

  chooseStep(step) {
    const event = this.known.find((one) => one.step === step);
    if (event) this.onChoose(event);
  }

  mark(chosen) {
    for (const event of this.known) event.button.setAttribute("aria-current", String(event === chosen));
  }
}
