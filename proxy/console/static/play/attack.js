// The attacker's page: what is believed of a victim before and after, and how many people are found over the day.
import { call, debounce, element } from "../api.js";
import { draw } from "../chart.js";
import { API, attempt, epsilonOf, number, percent, readLink, timeOf, writeLink } from "./shared.js";

const byId = (id) => document.getElementById(id);
const form = byId("choose"), MINUTES = 10, LIKELIEST = 12;
let belief = null, classes = null, beliefChart = null, classChart = null, waiting = null;

const value = (name) => form.elements[name].value;
const common = () => ({ seed: value("seed") || "1", attacker: value("attacker"), seen: value("seen"), epsilon: epsilonOf(Number(value("exponent"))) });

function label() {
  const ticks = 2 ** Number(value("doublings"));
  byId("epsilon-shown").textContent = epsilonOf(Number(value("exponent")));
  byId("time-shown").textContent = timeOf(Number(value("tick")), MINUTES);
  byId("ticks-shown").textContent = ticks === 1 ? "1 tick" : `${ticks} ticks`;
}

async function findVictims() {
  const { seed, attacker } = common();
  const kept = value("victim") || new URLSearchParams(location.search).get("victim");
  const found = await attempt(() => call(`${API}/attack/hidden?${new URLSearchParams({ seed, attacker, tick: value("tick") })}`));
  if (!found) return;
  form.elements.victim.replaceChildren(...found.people.slice(0, 200).map((one) => element("option", { value: String(one.person) }, `${one.role} ${one.person}`)));
  if (found.people.some((one) => String(one.person) === kept)) form.elements.victim.value = kept;
}

async function show() {
  label();
  waiting?.abort();
  waiting = new AbortController();
  const signal = waiting.signal;
  writeLink(form);
  if (!value("victim")) { byId("facts").replaceChildren(element("p", {}, "Nobody is hidden at this time.")); return; }
  const query = new URLSearchParams({ ...common(), tick: value("tick"), victim: value("victim"), ticks: 2 ** Number(value("doublings")) });
  belief = await attempt(() => call(`${API}/attack?${query}`, { signal }));
  if (!belief) return;
  const fact = (name, text) => element("div", {}, element("span", { class: "label" }, name), element("span", { class: "figure" }, text));
  byId("facts").replaceChildren(fact("Before", percent(belief.prior)), fact("From its count", percent(belief.posterior)), fact("From all counts", percent(belief.joint)), fact("Hidden people", String(belief.people)));
  byId("facts").append(element("p", { class: "note" }, `Truly in ${belief.true_region}.`));
  byId("presence").textContent = percent(belief.bound_of_presence);
  byId("place").textContent = percent(belief.bound_of_place);
  byId("loss").textContent = belief.loss === null ? "no bound at all" : `epsilon ${number(belief.loss)}`;
  showBelief();
}

function showBelief() {
  const shown = belief.regions.slice(0, LIKELIEST);
  const here = belief.regions.find((region) => region.here);
  if (!shown.includes(here)) shown.push(here);
  const rows = [...shown].reverse();
  const options = ({ ink, line, quiet, accent, good }) => ({
    color: [quiet, accent, good],
    grid: { left: 128, right: 20, top: 34, bottom: 30 },
    legend: { textStyle: { color: ink }, top: 2, type: "scroll" },
    tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, valueFormatter: percent },
    xAxis: { type: "value", axisLabel: { color: quiet, formatter: (share) => `${Math.round(1000 * share) / 10} %` }, splitLine: { lineStyle: { color: line } } },
    yAxis: { type: "category", data: rows.map((region) => `${region.here ? "▶ " : ""}${region.name}`), axisLabel: { color: ink }, axisLine: { lineStyle: { color: line } } },
    series: [["before", "prior"], ["from its count", "posterior"], ["from all counts", "joint"]].map(([name, key]) => ({ name, type: "bar", data: rows.map((region) => region[key]) })),
  });
  beliefChart = redraw(beliefChart, "beliefs", options, "Belief by region, before and after");
}

async function showDay() {
  const found = await attempt(() => call(`${API}/attack/day?${new URLSearchParams(common())}`));
  if (!found) return;
  classes = found;
  const options = ({ ink, line, quiet, accent }) => ({
    color: [quiet, accent],
    grid: { left: 48, right: 14, top: 34, bottom: 34 },
    legend: { textStyle: { color: ink }, top: 2, right: 0, left: 96, type: "scroll" },
    tooltip: { trigger: "axis", valueFormatter: number },
    xAxis: { type: "category", data: classes.classes, axisLabel: { color: quiet }, axisLine: { lineStyle: { color: line } } },
    yAxis: { type: "value", name: "people per tick", nameTextStyle: { color: quiet, align: "left" }, axisLabel: { color: quiet }, splitLine: { lineStyle: { color: line } } },
    series: [{ name: "hidden", type: "bar", data: classes.believed_per_tick }, { name: "raised above their prior", type: "bar", data: classes.raised_per_tick }],
  });
  classChart = redraw(classChart, "classes", options, "Hidden people by class of confidence");
  const raised = found.raised_per_tick.reduce((sum, one) => sum + one, 0);
  byId("raised").replaceChildren(`An attacker raises `, element("strong", {}, number(raised)), ` of ${number(found.hidden_per_tick)} hidden people per tick above their prior.`);
}

function redraw(kept, id, options, label_) {
  if (kept) { kept.options = options; kept.drawn.redraw(); return kept; }
  const made = { options };
  made.drawn = draw(byId(id), (theme) => made.options(theme), { label: label_ });
  return made;
}

const later = debounce(async (name) => {
  if (["seed", "attacker", "tick"].includes(name)) await findVictims();
  await show();
  if (["seed", "attacker", "seen", "exponent"].includes(name)) await showDay();
}, 120);
form.addEventListener("input", (event) => { label(); later(event.target.name); });
form.addEventListener("submit", (event) => event.preventDefault());
readLink(form);
label();
findVictims().then(show).then(showDay);
