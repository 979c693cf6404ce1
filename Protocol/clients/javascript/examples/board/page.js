/** Keeps a copy of the feed from the events of the gateway, and shows it. */

import { decode, Mirror } from "./feedd/feedd.js";
import { Cards } from "./cards.js";

const at = (id) => document.getElementById(id);
const token = location.hash.slice(1);
const cards = new Cards(at("board"));
const IDLE = 300;
let idle;

function tell(state, message = "") {
  at("state").dataset.state = state;
  at("state").textContent = state === "live" ? "live" : "connecting";
  at("message").textContent = message;
}

/** Follows the feed from its beginning. The browser connects again by itself, and names the last position that it had. */
function follow() {
  const source = new EventSource(`events?token=${encodeURIComponent(token)}`);
  let mirror = null;
  source.onmessage = ({ data }) => {
    try {
      const { method, params } = decode(data);
      if (method !== "watch") show(mirror.apply({ method, params }));
      else if (mirror) mirror.restart(params);
      else mirror = new Mirror(params);
      tell("live");
    } catch (error) {
      // The copy missed something.
      source.close();
      tell("waiting", error.message);
      setTimeout(follow, 500);
    }
  };
  source.addEventListener("failure", ({ data }) => tell("waiting", JSON.parse(data)));
  source.onerror = () => {
    if (source.readyState !== EventSource.CLOSED) tell("waiting", at("message").textContent);
    else tell("waiting", "the gateway refuses the token of this address");
  };
}

function show(change) {
  if (change === null || change.kind === "selection") return;
  const { mirror, revision, feed } = change;
  cards.show(change);
  document.title = feed;
  at("title").textContent = feed;
  at("revision").textContent = revision;
  at("count").textContent = mirror.counts().reduce((sum, count) => sum + count, 0).toLocaleString("en");
  at("digest").textContent = "…";
  clearTimeout(idle);
  idle = setTimeout(() => (at("digest").textContent = mirror.digest()), IDLE);
}

at("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const element = { id: crypto.randomUUID(), priority: Number(at("priority").value), text: at("text").value };
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const response = await fetch("push", { method: "POST", headers, body: JSON.stringify(element) }).catch(() => null);
  if (response?.ok) at("form").reset();
  else at("message").textContent = response ? (await response.json()).error : "the gateway does not answer";
});

follow();
