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
    small.textContent = `at ${clock(header.seconds)}, ${ratio(header.surprise)} × usual`;
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
    const side = bitmap.height;
    picture.width = picture.height = 68;
    picture.getContext("2d").drawImage(bitmap, 0, 0, side, side, 0, 0, 68, 68);
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
