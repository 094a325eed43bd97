// What the page may ask for, where rvq top was started with --admin. Says what came of it.

import { byId, el, say } from "/dom.js";

const SURE_MS = 5000;
const TOLD_MS = 8000;

export class Actions {
  constructor(mark) {
    this.mark = mark;
  }

  async run(action) {
    tell("asking …");
    try {
      const response = await fetch("/act", {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-RVQ-Mark": this.mark },
        body: JSON.stringify(action),
      });
      const isJson = (response.headers.get("Content-Type") ?? "").startsWith("application/json");
      const answer = isJson ? await response.json() : { error: await response.text() };
      tell(answer.done ?? `Not done: ${answer.error}`, Boolean(answer.error));
    } catch {
      tell("Not done: rvq top does not answer.", true);
    }
  }

  /** A button that asks once more before it does anything. */
  confirmed(words, label, actionOf) {
    const button = el("button", { type: "button", "aria-label": label }, words);
    let timer = 0;
    const calm = () => {
      clearTimeout(timer);
      timer = 0;
      button.classList.remove("sure");
      say(button, button.dataset.words ?? words);
      button.setAttribute("aria-label", button.dataset.label ?? label);
    };
    button.addEventListener("click", () => {
      if (timer) {
        calm();
        this.run(actionOf());
        return;
      }
      button.classList.add("sure");
      say(button, "Sure?");
      button.setAttribute("aria-label", `${button.dataset.label ?? label}: press again if you are sure`);
      timer = setTimeout(calm, SURE_MS);
    });
    button.addEventListener("blur", calm);
    return button;
  }
}

let fading = 0;

function tell(words, isBad = false) {
  const toast = byId("toast");
  say(toast, words);
  toast.classList.toggle("bad", isBad);
  toast.classList.add("shown");
  clearTimeout(fading);
  fading = setTimeout(() => toast.classList.remove("shown"), TOLD_MS);
}
