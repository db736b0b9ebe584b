// The browser's camera: sends the centred square in grey, at the size of the model.

const GREY = [0.299, 0.587, 0.114];
const MAX_RATE = 30;

export class Camera {
  constructor(socket) {
    this.socket = socket;
    this.video = Object.assign(document.createElement("video"), { muted: true, playsInline: true });
    this.canvas = document.createElement("canvas");
    this.context = this.canvas.getContext("2d", { willReadFrequently: true });
    this.running = false;
  }

  // Browsers allow the camera only for https and localhost.
  static get possible() { return Boolean(navigator.mediaDevices?.getUserMedia); }

  async start(size) {
    const video = { width: { ideal: 640 }, height: { ideal: 480 }, frameRate: { ideal: 25, max: MAX_RATE } };
    this.stream = await navigator.mediaDevices.getUserMedia({ video, audio: false });
    this.video.srcObject = this.stream;
    await this.video.play();
    this.canvas.width = this.canvas.height = size;
    this.bytes = new Uint8Array(size * size);
    this.running = true;
    this.last = 0;
    this.wait();
  }

  stop() {
    this.running = false;
    this.stream?.getTracks().forEach((track) => track.stop());
  }

  wait() {
    if (!this.running) return;
    const next = () => { this.send(); this.wait(); };
    if (this.video.requestVideoFrameCallback) this.video.requestVideoFrameCallback(next);
    else setTimeout(next, 40);
  }

  send() {
    const now = performance.now();
    if (now - this.last < 900 / MAX_RATE) return;
    this.last = now;
    const { videoWidth: width, videoHeight: height } = this.video;
    const side = Math.min(width, height);
    const size = this.canvas.width;
    this.context.drawImage(this.video, (width - side) / 2, (height - side) / 2, side, side, 0, 0, size, size);
    const { data } = this.context.getImageData(0, 0, size, size);
    for (let i = 0, j = 0; i < this.bytes.length; i += 1, j += 4) {
      this.bytes[i] = GREY[0] * data[j] + GREY[1] * data[j + 1] + GREY[2] * data[j + 2];
    }
    this.socket.sendFrame(this.bytes);
  }
}
