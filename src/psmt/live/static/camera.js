// The browser's camera: sends frames in colour, at the size of the model.

const MAX_RATE = 30;

export class Camera {
  constructor(send) {
    this.sendFrame = send;
    this.video = Object.assign(document.createElement("video"), { muted: true, playsInline: true });
    this.canvas = document.createElement("canvas");
    this.context = this.canvas.getContext("2d", { willReadFrequently: true });
    this.running = false;
  }

  // Browsers allow the camera only for https and localhost.
  static get possible() { return Boolean(navigator.mediaDevices?.getUserMedia); }

  async start([height, width]) {
    const video = { width: { ideal: 640 }, height: { ideal: 480 }, frameRate: { ideal: 25, max: MAX_RATE } };
    this.stream = await navigator.mediaDevices.getUserMedia({ video, audio: false });
    this.video.srcObject = this.stream;
    await this.video.play();
    Object.assign(this.canvas, { width, height });
    this.bytes = new Uint8Array(3 * height * width);
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
    const { width, height } = this.canvas;
    // A picture of another shape gets bars at two sides, so that no part of it is lost.
    const scale = Math.min(width / this.video.videoWidth, height / this.video.videoHeight);
    const [wide, high] = [scale * this.video.videoWidth, scale * this.video.videoHeight];
    this.context.drawImage(this.video, (width - wide) / 2, (height - high) / 2, wide, high);
    const { data } = this.context.getImageData(0, 0, width, height);
    for (let i = 0, j = 0; i < this.bytes.length; i += 3, j += 4) {
      this.bytes[i] = data[j]; this.bytes[i + 1] = data[j + 1]; this.bytes[i + 2] = data[j + 2];
    }
    this.sendFrame(this.bytes);
  }
}
