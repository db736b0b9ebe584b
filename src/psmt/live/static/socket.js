// The socket: receives messages, sends controls, and reconnects.

const decoder = new TextDecoder();

function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(decoder.decode(new Uint8Array(buffer, 4, length)));
  return [header, new Uint8Array(buffer, 4 + length)];
}

export class Socket {
  constructor(path, { onMessage, onState }) {
    this.path = path;
    this.onMessage = onMessage;
    this.onState = onState;
    this.roundTrip = null;
    this.tries = 0;
    this.open();
    setInterval(() => this.ask("ping", performance.now()), 2000);
  }

  open() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.line = new WebSocket(`${scheme}://${location.host}${this.path}`);
    this.line.binaryType = "arraybuffer";
    this.line.onopen = () => { this.tries = 0; this.onState("open", ""); this.ask("ping", performance.now()); };
    this.line.onmessage = ({ data }) => {
      const [header, payload] = unpack(data);
      if (header.kind === "pong") this.roundTrip = performance.now() - header.value;
      else this.onMessage(header, payload);
    };
    const { line } = this;
    line.onclose = ({ reason }) => {
      if (line !== this.line) return;
      this.onState("closed", reason);
      this.tries += 1;
      setTimeout(() => this.open(), Math.min(8000, 400 * 2 ** this.tries));
    };
  }

  // Connect again. The server then sends everything, not only what is new.
  reopen() {
    const { line } = this;
    this.open();
    line.close();
  }

  get ready() { return this.line.readyState === WebSocket.OPEN; }

  ask(name, value) {
    if (this.ready) this.line.send(JSON.stringify(value === undefined ? { do: name } : { do: name, value }));
  }

  // Skip frames that the connection is too slow for: old frames are useless.
  sendFrame(bytes) {
    if (this.ready && this.line.bufferedAmount < 2 * bytes.length) this.line.send(bytes);
  }
}
