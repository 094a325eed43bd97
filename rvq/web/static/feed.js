// The stream of pictures. Notices when it breaks, also when it only falls silent, and connects again by itself.

const SILENT_MS = 6000;
const PAUSES_MS = [500, 1000, 2000, 4000, 8000];

export class Feed {
  /** `onPicture(picture)`, `onState("live" | "broken", words, secondsUntilNext)`; `prepare()` runs before each try. */
  constructor({ prepare, onPicture, onState }) {
    Object.assign(this, { prepare, onPicture, onState, tries: 0, source: null, timer: 0, watchdog: 0, attempt: 0 });
    addEventListener("online", () => this.connect());
    addEventListener("pageshow", (event) => event.persisted && this.connect());
  }

  async connect() {
    this.stop();
    const attempt = ++this.attempt;
    try {
      await this.prepare();
    } catch (error) {
      if (attempt === this.attempt) this.broke(error.message);
      return;
    }
    if (attempt !== this.attempt) return;
    this.source = new EventSource("/pictures");
    this.source.onmessage = (event) => {
      this.tries = 0;
      this.watch();
      this.onState("live", "live", 0);
      this.onPicture(JSON.parse(event.data));
    };
    this.source.onerror = () => this.broke("The stream from rvq top broke.");
    this.watch();
  }

  watch() {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => this.broke("Nothing comes from rvq top any more."), SILENT_MS);
  }

  broke(words) {
    this.stop();
    const pause = PAUSES_MS[Math.min(this.tries++, PAUSES_MS.length - 1)];
    this.onState("broken", words, pause / 1000);
    this.timer = setTimeout(() => this.connect(), pause);
  }

  stop() {
    clearTimeout(this.timer);
    clearTimeout(this.watchdog);
    this.source?.close();
    this.source = null;
  }
}
