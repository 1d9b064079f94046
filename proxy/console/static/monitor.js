// One monitor live: the alerts that were there when the page was made, then what the stream of events tells.
import { data, element } from "./api.js";

const told = data("told");
const rows = new Map();
const body = document.querySelector("#alerts tbody");
const news = document.getElementById("news");
const MOST_NEWS = 50; // lines of the list beside the table: what is older stands in the table

const identity = (one) => JSON.stringify([one.key, one.window ?? null, one.alerted_at]);
const time = (text) => (text ? text.replace("T", " ").replace(/(\.\d+)?(\+00:00|Z)$/, " UTC") : "");

function show(alert) {
  const known = rows.get(identity(alert));
  const cells = [...told.keys.map((key) => alert.key[key] ?? "NULL"), time(alert.window), time(alert.alerted_at), String(alert.look), time(alert.cleared_at)];
  const row = element("tr", {}, ...cells.map((text) => element("td", {}, text)));
  if (known) known.replaceWith(row); else body.prepend(row);
  rows.set(identity(alert), row);
  document.getElementById("none").hidden = true;
}

function clear(gone) {
  for (const [id, row] of rows) {
    const [key, , alerted] = JSON.parse(id);
    if (JSON.stringify(key) === JSON.stringify(gone.key) && alerted === gone.alerted_at) row.lastElementChild.textContent = time(gone.cleared_at);
  }
}

function tell(text) {
  news.prepend(element("li", {}, text));
  while (news.children.length > MOST_NEWS) news.lastElementChild.remove();
}

const name = (one) => told.keys.map((key) => one.key[key]).join(" / ");

for (const alert of told.alerts) show(alert);
for (const gone of told.cleared) clear(gone);

const live = document.getElementById("live");
const stream = new EventSource(`/console/api/monitors/${encodeURIComponent(told.name)}/events?after=${told.look}`);
const on = (kind, work) => stream.addEventListener(kind, (event) => work(JSON.parse(event.data)));
stream.onopen = () => { live.textContent = "live"; live.className = "chip good"; };
stream.onerror = () => {
  const over = stream.readyState === EventSource.CLOSED;
  live.textContent = over ? "not connected" : "connecting again";
  live.className = "chip warn";
};
on("alert", (alert) => { show(alert); tell(`${name(alert)}: alerted at look ${alert.look}`); });
on("cleared", (gone) => { clear(gone); tell(`${name(gone)}: cleared at look ${gone.look}`); });
on("closed", (one) => tell(`the window that began ${time(one.window)} is closed`));
on("look", (one) => { document.getElementById("look").textContent = String(one.look); });
for (const kind of ["paused", "ended"]) {
  on(kind, (one) => {
    document.getElementById("state").textContent = one.state;
    tell(`${one.state}${one.reason ? `: ${one.reason}` : ""}`);
    if (kind === "ended") { stream.close(); live.textContent = "ended"; live.className = "chip"; }
  });
}
