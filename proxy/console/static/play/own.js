// A table of the owner's own: what a way of publishing leaves of it, and, when asked for, the truth.
import { call, data, debounce, element } from "../api.js";
import { draw } from "../chart.js";
import { API, attempt, epsilonOf, number } from "./shared.js";

const told = data("told");
const byId = (id) => document.getElementById(id);
const form = byId("choose"), guess = byId("guess");
let waiting = null, seen = null, truth = null, chart = null;

const chosen = () => {
  const { place, way, threshold, exponent } = Object.fromEntries(new FormData(form));
  return { place, way, threshold, epsilon: epsilonOf(Number(exponent)) };
};
const label = () => {
  byId("epsilon-shown").textContent = chosen().epsilon;
  byId("way-text").textContent = told.ways[chosen().way];
};

async function show() {
  if (!form.reportValidity()) return;
  waiting?.abort();
  waiting = new AbortController();
  truth = null;
  byId("truth").hidden = true;
  const found = await attempt(() => call(`${API}/own/seen?${new URLSearchParams(chosen())}`, { signal: waiting.signal }));
  if (!found) return;
  seen = found;
  showSeen();
}

async function reveal(event) {
  event.preventDefault();
  if (!form.reportValidity()) return;
  const { place, threshold, epsilon } = chosen(), guessed = Number(guess.elements.guess.value);
  const found = await attempt(() => call(`${API}/own/truth?${new URLSearchParams({ place, threshold, epsilon })}`, { signal: waiting?.signal }));
  if (!found) return;
  truth = found;
  byId("truth").hidden = false;
  const off = Math.abs(found.above - guessed);
  byId("verdict").textContent = `${number(found.above)} of ${number(told.times.length)} are above ${number(Number(threshold))}. Your guess was ${off ? `off by ${number(off)}` : "right"}.`;
  byId("ways").tBodies[0].replaceChildren(...found.ways.map((way) => element("tr", {}, element("th", { scope: "row", title: way.text }, way.way),
    ...[way.mean_error, way.missed, way.slack, way.wrong].map((value) => element("td", { class: "number" }, value === null ? "no counts" : number(value))))));
  byId("slack").textContent = `The tolerance is what Keyhole affords at this epsilon, ${number(found.tolerance)} below the threshold, with 5 % missed and 10 % wrong beyond it.`;
  showSeen();
}

function showSeen() {
  const keys = seen.keys === null ? null : seen.keys.map((at) => told.times[at]);
  byId("keys").hidden = keys === null;
  byId("keys").replaceChildren(...(keys ?? []).map((name) => element("span", { class: "chip" }, name)));
  byId("drawn").textContent = keys === null ? "Counts, with noise that was drawn for this look." : `${number(keys.length)} keys, and no count.`;
  const options = ({ ink, line, quiet, accent, bad, warn }) => ({
    color: [accent, bad],
    grid: { left: 48, right: 16, top: 36, bottom: 34 },
    legend: { textStyle: { color: ink }, top: 2 },
    tooltip: { trigger: "axis" },
    xAxis: { type: "category", data: told.times, axisLabel: { color: quiet } },
    yAxis: { type: "value", axisLabel: { color: quiet }, splitLine: { lineStyle: { color: line } } },
    series: [
      { name: "published", type: keys === null ? "line" : "scatter", symbolSize: keys === null ? 3 : 8,
        data: keys === null ? seen.published : seen.keys.map((at) => [told.times[at], Number(form.elements.threshold.value)]),
        markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: warn }, data: [{ yAxis: Number(form.elements.threshold.value) }] } },
      ...(truth ? [{ name: "truth", type: "line", symbolSize: 3, data: truth.true }] : []),
    ],
  });
  if (chart) { chart.options = options; chart.drawn.redraw(); return; }
  chart = { options };
  chart.drawn = draw(byId("series"), (theme) => chart.options(theme), { label: "What is published, and the truth once it is shown" });
}

form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", () => { label(); later(); });
guess.addEventListener("submit", reveal);
byId("again").addEventListener("click", show);
const later = debounce(show, 200);
label();
show();
