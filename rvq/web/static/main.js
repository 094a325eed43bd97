// Composes the page: pictures in, parts drawn. Owns which group is shown.

import { Actions } from "/actions.js";
import { Colours } from "/colours.js";
import { Detail } from "/detail.js";
import { byId, mark, say } from "/dom.js";
import { Events } from "/events.js";
import { Feed } from "/feed.js";
import { History } from "/history.js";
import { Cards, Totals, busiest, groupsOf } from "/overview.js";

const history = new History();
const totals = new Totals(byId("totals"));
const cards = new Cards(byId("cards"));
const events = new Events(byId("events"), byId("events-of"));
let actions = null;
let detail = null;
let newest = null;
let isLoaded = false;
let first = null; // the group that is shown while nobody chose one

/** Before each connection: who we are to the server, and what it remembers. */
async function prepare() {
  const answer = await fetch("/about", { headers: { Accept: "application/json" } }).catch(() => null);
  if (answer?.status === 401) location.assign("/login");
  if (!answer?.ok) throw new Error(answer ? "rvq top does not let this page in." : "rvq top does not answer.");
  const about = await answer.json();
  say(byId("foot"), `rvq ${about.version}`);
  if (about.admin && !actions) actions = new Actions(about.mark);
  if (actions) actions.mark = about.mark;
  if (!isLoaded) {
    history.load(await (await fetch("/history")).json());
    isLoaded = true;
  }
  detail ??= new Detail({ history, colours: new Colours(), actions });
}

function show(picture) {
  newest = picture;
  history.take(picture);
  draw();
}

function draw() {
  const picture = newest;
  if (!picture) return;
  const items = groupsOf(picture);
  const asked = items.find(({ key }) => key === location.hash);
  const chosen = asked ?? items.find(({ key }) => key === first) ?? busiest(items);
  if (!asked) first = chosen?.key;
  showBus(picture.bus, !items.length);
  for (const id of ["totals", "groups", "detail"]) byId(id).hidden = !items.length;
  byId("events-panel").hidden = !items.length && !picture.events.length;
  if (chosen) {
    totals.show(picture);
    cards.show(items, chosen.key);
    detail.show(picture, chosen);
  }
  document.title = chosen ? `${chosen.label.label} – rvq` : "rvq";
  events.show(picture, chosen?.label.label);
}

function showBus({ interface: name, port, address, sealed }, isEmpty) {
  const words = `${name} · ${address} : ${port} · ${sealed ? "sealed" : "open"}`;
  say(byId("bus"), words);
  byId("empty").hidden = !isEmpty;
  say(byId("empty-bus"), words);
  const options = `${name === "lo" ? "" : ` --interface ${name}`}${port === 7400 ? "" : ` --port ${port}`}`;
  say(byId("empty-listen"), `rvq-listen work${options}`);
  say(byId("empty-send"), `seq 1000 | rvq-send work${options}`);
  say(byId("empty-doctor"), `rvq doctor${options}`);
}

let countdown = 0;

function onState(state, words, pause) {
  clearInterval(countdown);
  mark(byId("live"), "data-state", state);
  say(byId("live-words"), state === "live" ? "live" : "not live");
  byId("broken").hidden = state === "live";
  document.body.classList.toggle("stale", state !== "live");
  if (state === "live") return;
  const until = Date.now() + 1000 * pause;
  const since = newest ? ` What you see is from ${new Date(1000 * newest.at).toLocaleTimeString("en-GB")}.` : "";
  const tell = () => {
    const left = Math.ceil((until - Date.now()) / 1000);
    say(byId("broken-next"), left > 0 ? `Trying again in ${left} s.` : "Trying again.");
  };
  say(byId("broken-words"), words + since); // read out once; the seconds are not
  tell();
  countdown = setInterval(tell, 1000);
}

const feed = new Feed({ prepare, onPicture: show, onState });
byId("again").addEventListener("click", () => feed.connect());
addEventListener("hashchange", draw);
feed.connect();
