// From an epsilon to what it is good for and what it gives away.
import { call, data, debounce, element } from "../api.js";
import { draw } from "../chart.js";
import { API, attempt, epsilonOf, number, percent, readLink, writeLink } from "./shared.js";

const byId = (id) => document.getElementById(id);
const form = byId("choose");
const TASKS = { T1: "T1: intervals above a number", T2: "T2: the busiest region at night", T3: "T3: since when a sensor is broken", T4: "T4: when a lecture begins", T5: "T5: when a weekly meeting is" };
let waiting = null, been = new Map(), curve = null, where = "";

const label = () => { byId("epsilon-shown").textContent = epsilonOf(Number(form.elements.exponent.value)); };

const WAYS = Object.keys(data("told").ways);
const GRID = [0.01, 0.1, 1, 10, 0.03, 0.3, 3];

async function show() {
  waiting?.abort();
  waiting = new AbortController();
  byId("ways-holder").hidden = true;
  byId("more-state").textContent = "";
  writeLink(form);
  const { seed, attacker, looks, exponent } = Object.fromEntries(new FormData(form));
  const epsilon = epsilonOf(Number(exponent)), signal = waiting.signal;
  const ask = (at) => call(`${API}/tradeoff?${new URLSearchParams({ seed: seed || "1", attacker, looks, epsilon: at })}`, { signal });
  const found = await attempt(() => ask(epsilon));
  if (!found) return;
  byId("tolerance").textContent = number(Math.ceil(found.tolerance));
  byId("laplace").textContent = number(found.raised.tick_laplace);
  byId("keyhole").textContent = number(found.raised.keyhole);
  byId("ttl").textContent = number(found.raised.ttl);
  byId("true").textContent = number(found.raised.true);
  const told = (error, wrong) => `${number(error)}${wrong ? ` (${percent(wrong)} on a wrong weekday)` : ""}`;
  byId("tasks").tBodies[0].replaceChildren(...found.tasks.map((task) => element("tr", {}, element("td", {}, TASKS[task.task]),
    element("td", { class: "number" }, told(task.laplace, task.laplace_wrong_day)), element("td", { class: "number" }, told(task.keyhole, task.keyhole_wrong_day)))));
  byId("policy").textContent = found.policy;
  if (where !== `${seed} ${attacker}`) { where = `${seed} ${attacker}`; been = new Map(); }
  been.set(epsilon, found);
  showCurve();
  // the rest of the curve, one after the other, until something else is chosen
  for (const at of GRID) {
    if (signal.aborted) return;
    if (been.has(at)) continue;
    const more = await attempt(() => ask(at));
    if (!more || signal.aborted) return;
    been.set(at, more);
    showCurve();
  }
}

function showCurve() {
  const points = () => [...been].sort(([one], [other]) => one - other);
  const options = ({ ink, line, quiet, accent, bad }) => ({
    color: [accent, bad],
    grid: { left: 48, right: 48, top: 40, bottom: 34 },
    legend: { textStyle: { color: ink }, top: 2, type: "scroll" },
    tooltip: { trigger: "axis", valueFormatter: number },
    xAxis: { type: "log", min: 0.01, max: 10, axisLabel: { color: quiet }, splitLine: { lineStyle: { color: line } } },
    yAxis: [{ type: "value", name: "intervals", nameTextStyle: { color: quiet }, axisLabel: { color: quiet }, splitLine: { lineStyle: { color: line } } }, { type: "value", name: "people", nameTextStyle: { color: quiet }, axisLabel: { color: quiet }, splitLine: { show: false } }],
    series: [{ name: "error in T1", type: "line", data: points().map(([epsilon, found]) => [epsilon, found.tasks[0].laplace]) },
      { name: "localised per tick", type: "line", yAxisIndex: 1, data: points().map(([epsilon, found]) => [epsilon, found.raised.tick_laplace]) }],
  });
  if (curve) { curve.options = options; curve.drawn.redraw(); return; }
  curve = { options };
  curve.drawn = draw(byId("curve"), (theme) => curve.options(theme), { label: "Errors and people localised, by epsilon" });
}

// Every way of publishing at the chosen epsilon, one after the other: PeGaSus takes seconds.
async function showWays() {
  const { seed, exponent } = Object.fromEntries(new FormData(form));
  const epsilon = epsilonOf(Number(exponent)), signal = waiting.signal, body = byId("ways").tBodies[0];
  body.replaceChildren();
  byId("ways-holder").hidden = false;
  for (const way of WAYS) {
    byId("more-state").textContent = `working out ${way} …`;
    const found = await attempt(() => call(`${API}/errors?${new URLSearchParams({ seed: seed || "1", way, epsilon })}`, { signal }));
    if (!found || signal.aborted) return;
    body.append(element("tr", {}, element("th", { scope: "row", title: found.text }, found.way),
      ...found.tasks.map((task) => element("td", { class: "number" }, number(task.error)))));
  }
  byId("more-state").textContent = "Six worlds each, with noise drawn some times in each; two, and once, where ticks are grouped.";
}

async function copy(text, said) {
  try { await navigator.clipboard.writeText(text); byId("copied").textContent = said; } catch { byId("copied").textContent = "The browser does not allow copying: mark the text and copy it."; }
}

byId("copy").addEventListener("click", () => copy(byId("policy").textContent, "Copied."));
byId("more").addEventListener("click", showWays);
byId("link").addEventListener("click", () => copy(location.href, "Link copied."));
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", () => { label(); later(); });
const later = debounce(show, 150);
readLink(form);
label();
show();
