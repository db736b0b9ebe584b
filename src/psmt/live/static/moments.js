// What stood out: a list of events, each with the pictures of its time.

const MOST = 40;
const NAMES = { cut: "Cut", flash: "Flash", surprise: "Surprise" };

// Beyond that the figure says how quiet it had been, and no longer how strange this is.
const times = (surprise) => surprise === null ? "–" : surprise > 999 ? "over 999" : String(Math.round(surprise));

export const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

export class Moments {
  constructor(list, empty, onChoose) {
    Object.assign(this, { list, empty, onChoose, known: [] });
  }

  forget() {
    this.known = [];
    this.list.replaceChildren();
    this.empty.hidden = false;
  }

  async add(header, strip) {
    // A cut may turn out to be a flash.
    const earlier = this.known.find((one) => one.number === header.number);
    if (earlier) { earlier.what = header.what; earlier.title.data = NAMES[header.what]; return; }
    const moment = { ...header, strip: strip.slice() };
    const [item, button, picture, text, small] = ["li", "button", "canvas", "span", "small"].map((kind) => document.createElement(kind));
    button.type = "button";
    moment.title = document.createTextNode(NAMES[header.what]);
    small.textContent = `at ${clock(header.seconds)}, ${times(header.surprise)} × usual`;
    text.append(moment.title, small);
    button.append(picture, text);
    button.addEventListener("click", () => this.onChoose(moment));
    item.append(button);
    moment.button = button;
    this.known.push(moment);
    this.list.prepend(item);
    this.empty.hidden = true;
    if (this.known.length > MOST) { this.known.shift(); this.list.lastElementChild.remove(); }
    const bitmap = await createImageBitmap(new Blob([moment.strip], { type: "image/jpeg" }));
    const side = bitmap.height;
    picture.width = picture.height = 68;
    picture.getContext("2d").drawImage(bitmap, 0, 0, side, side, 0, 0, 68, 68);
    bitmap.close();
  }

  chooseStep(step) {
    const moment = this.known.find((one) => one.step === step);
    if (moment) this.onChoose(moment);
  }

  mark(chosen) {
    for (const moment of this.known) moment.button.setAttribute("aria-current", String(moment === chosen));
  }
}
