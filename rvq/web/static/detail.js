// One group, or one label that has none: its charts, tables, receivers and senders.

import { Charts } from "/charts.js";
import { Keyed, byId, el, mark, say } from "/dom.js";
import { Receivers } from "/receivers.js";
import { Senders } from "/senders.js";
import { Timeline } from "/timeline.js";
import { brief, many } from "/words.js";

export class Detail {
  constructor({ history, colours, actions }) {
    Object.assign(this, { history, colours });
    this.view = { label: "", colourOf: () => "c-none", pinned: null, now: 0, slots: 0 };
    this.charts = new Charts(byId("charts"), history);
    this.timeline = new Timeline(byId("timeline"), byId("timeline-words"));
    this.receivers = new Receivers(byId("receivers"), { history, view: this.view, pin: (id) => this.pin(id), actions });
    this.senders = new Senders(byId("senders"));
    this.legend = new Keyed(byId("legend"), (receiver) => this.chip(receiver), (part, receiver) => this.updateChip(part, receiver));
    if (actions) this.addPause(actions);
  }

  show(picture, { key, label, group }) {
    if (this.key !== key) this.view.pinned = null;
    Object.assign(this, { key, picture, shown: { key, label, group } });
    const receivers = group?.receivers ?? [];
    if (!receivers.some(({ id }) => id === this.view.pinned)) this.view.pinned = null;
    const switches = picture.switches.filter((one) => one.label === label.label && one.group === group?.group);
    const departed = this.history.departed(key, new Set(receivers.map(({ id }) => id)));
    const ids = [...switches.flatMap(({ slots }) => slots), ...receivers.map(({ id }) => id), ...departed];
    Object.assign(this.view, { label: label.label, now: Math.floor(picture.at), slots: group?.slots ?? 0, colourOf: this.colours.of(key, ids) });
    say(byId("detail-name"), group ? `${label.label} · ${group.group}` : label.label);
    say(byId("detail-words"), group ? words(group) : "Nobody listens to this label: messages wait at their senders.");
    for (const id of ["charts", "timeline-panel", "receivers-panel"]) byId(id).hidden = !group;
    this.legend.show(receivers.length > 1 ? receivers : [], ({ id }) => id);
    if (group) {
      this.charts.show(receivers, departed, this.view.colourOf, this.view.pinned, picture.at);
      const hosts = new Map(receivers.map(({ id, host }) => [id, host]));
      this.timeline.show(switches, this.view.colourOf, (id) => (hosts.get(id) ? `${brief(id)} (${hosts.get(id)})` : brief(id)), this.view.pinned);
      this.receivers.show(receivers);
    }
    this.senders.show(label.senders);
    this.updatePause(label, group);
  }

  pin(id) {
    this.view.pinned = this.view.pinned === id ? null : id;
    this.show(this.picture, this.shown);
  }

  chip({ id }) {
    const swatch = el("span", { class: "swatch" });
    const button = el("button", { type: "button", class: "pin mono", title: id }, swatch, brief(id));
    button.addEventListener("click", () => this.pin(id));
    return { root: el("li", {}, button), swatch, button };
  }

  updateChip({ swatch, button }, { id, state }) {
    mark(swatch, "class", `swatch ${this.view.colourOf(id)}`);
    mark(button, "aria-pressed", this.view.pinned === id);
    mark(button, "aria-label", `Show receiver ${brief(id)} alone`);
    button.classList.toggle("gone", state === "silent");
  }

  addPause(actions) {
    this.pause = actions.confirmed("Pause group", "Pause this group", () => {
      const { label, group } = this.shown;
      return { do: group.paused ? "resume" : "pause", label: label.label, group: group.group };
    });
    byId("detail-acts").append(this.pause);
  }

  updatePause(label, group) {
    if (!this.pause) return;
    this.pause.hidden = !group;
    const word = group?.paused ? "Resume" : "Pause";
    mark(this.pause, "data-words", `${word} group`);
    mark(this.pause, "data-label", `${word} group ${group?.group} of ${label.label}`);
    if (this.pause.classList.contains("sure")) return;
    say(this.pause, this.pause.dataset.words);
    mark(this.pause, "aria-label", this.pause.dataset.label);
  }
}

function words({ version, slots, receivers, paused }) {
  const table = version ? `Table v${version[0]}, written by ${brief(version[1])}` : "No table yet";
  return `${table}; ${many(receivers.length, "receiver")}, ${many(slots ?? 0, "lane")}${paused ? "; paused: nobody starts anything" : ""}`;
}
