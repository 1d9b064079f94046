// The game: a session, its rounds, what is published of the building, and the truth after each answer.
import { call, data, element } from "../api.js";
import { draw } from "../chart.js";
import { API, attempt, clock, number, timeOf } from "./shared.js";

const told = data("told"), places = told.places;
const byId = (id) => document.getElementById(id);
const regions = places.map((place, at) => ({ ...place, at })).filter((place) => place.level === "region");
const COLOURS = ["#c6d3e0", "#d9e6f0", "#d5ecec", "#d4efd9", "#e6f3c4", "#fbeeb0", "#fddb8e", "#fcbf70", "#f99f62", "#ef7d5d"];
const LINES = ["#2f6fc4", "#c2571a", "#2b8a57", "#8a4fbf", "#b3325c", "#6b7a1f", "#1b8a99", "#7a5a3a"];
const STORED = "keyhole-play";

let session = null, readAt = 0, chosen = [], seen = null, heat = null, waiting = null;
let seriesChart = null, heatChart = null;

const address = (rest) => `${API}/sessions/${encodeURIComponent(session.key)}${rest}`;

async function showBoard() {
  const board = await attempt(() => call(`${API}/board`));
  if (!board) return;
  byId("no-board").hidden = board.best.length > 0;
  byId("board").hidden = board.best.length === 0;
  byId("board").tBodies[0].replaceChildren(...board.best.map((score, at) => element("tr", {},
    element("td", {}, String(at + 1)), element("td", {}, score.name),
    element("td", { class: "number" }, String(score.rounds)), element("td", { class: "number" }, number(score.points)))));
}

function take(next) {
  session = next;
  readAt = performance.now();
  try { sessionStorage.setItem(STORED, session.over ? "" : session.key); } catch { /* then a reload begins anew */ }
  byId("start").hidden = !session.over;
  byId("playing").hidden = false;
  byId("points").textContent = number(session.points);
  byId("rounds").textContent = session.rounds;
  const round = session.round;
  for (const id of ["task", "view", "keys"]) byId(id).hidden = !round;
  byId("end").hidden = session.over;
  if (session.over) finish();
}

function finish() {
  byId("left").textContent = "over";
  byId("used").textContent = "";
  byId("feedback").hidden = false;
  byId("feedback").append(element("div", { class: "card" },
    element("h2", {}, `Over: ${number(session.points)} points in ${session.rounds} rounds`),
    element("p", {}, `The building's seed was ${session.seed}. Whoever plays it gets the same people and the same questions.`),
    element("div", { class: "row" },
      element("a", { class: "button", href: address("/trace"), download: "trace.jsonl" }, "Trace of this session"),
      element("a", { class: "button", href: `${API}/traces`, download: "traces.jsonl" }, "Traces of all sessions"))));
  showBoard();
}

async function nextRound() {
  const next = await attempt(() => call(address("/rounds"), { body: {} }));
  if (!next) { await refresh(); return; }
  byId("feedback").hidden = true;
  byId("feedback").replaceChildren();
  take(next);
  showRound();
  byId("task-text").focus?.();
}

async function refresh() {
  const next = await attempt(() => call(address("")));
  if (next) take(next);
}

function showRound() {
  const round = session.round;
  byId("task-kind").textContent = `Round ${round.number + 1} · ${round.task}`;
  byId("task-text").textContent = round.text;
  byId("task-way").textContent = round.way ? `${round.way_text}${round.epsilon ? ` Epsilon ${round.epsilon} for one presence at one tick.` : ""}` : "";
  showAnswer(round);
  byId("keys").hidden = !round.keys;
  byId("view").hidden = Boolean(round.keys);
  if (round.keys) {
    byId("keys").replaceChildren(element("h2", {}, "What Keyhole answers"), ...keySet(round.keys));
    return;
  }
  fill("day", session.days.map((name, at) => [at, name]));
  byId("day").value = round.day ?? round.weekday ?? 0;
  byId("days").value = round.task === "T3" || round.task === "T5" ? 7 : 1;
  chosen = [round.place ?? 0];
  for (const option of byId("level").options) option.selected = option.value === "region";
  fillPlaces();
  look();
}

function keySet(keys) {
  const shown = keys.keys.slice(0, 300).map((key) => element("span", { class: "chip" }, key));
  return [
    element("pre", {}, keys.sql),
    element("p", {}, keys.keys.length ? `${keys.keys.length} keys:` : "No key passes."),
    element("div", { class: "set" }, ...shown),
    element("p", { class: "note" }, `Each is missed 5 % of the time at most; one that fails by more than ${keys.tolerance} is returned 10 % of the time at most. It costs ${keys.loss.toPrecision(2)} for one presence.`),
  ];
}

function fill(id, pairs) {
  byId(id).replaceChildren(...pairs.map(([value, name]) => element("option", { value: String(value) }, name)));
}

function fillPlaces() {
  const level = byId("level").value;
  fill("place", places.flatMap((place, at) => place.level === level ? [[at, place.name]] : []));
}

function showAnswer(round) {
  const ticks = 1440 / session.tick_minutes;
  const time = element("label", {}, "Time", element("input", { type: "time", name: "time", step: String(session.tick_minutes * 60), required: "" }));
  const day = (names, label) => element("label", {}, label, element("select", { name: "day" }, ...names.map((name, at) => element("option", { value: String(at) }, name))));
  const fields = {
    T1: () => [element("label", {}, "Intervals", element("input", { type: "number", name: "count", min: "0", max: String(ticks), required: "" }))],
    T2: () => [element("label", {}, "Region", element("select", { name: "place" }, ...regions.map((place) => element("option", { value: String(place.at) }, place.name))))],
    T3: () => [day(session.days, "Day"), time],
    T4: () => [time],
    T5: () => [day(told.weekdays, "Weekday"), time],
  }[round.task]();
  byId("answer").replaceChildren(...fields,
    element("button", { class: "primary", type: "submit" }, "Answer"),
    element("button", { class: "quiet", type: "button", onclick: giveUp }, "Give up this round"));
}

async function giveUp() {
  const next = await attempt(() => call(address("/give-up"), { body: {} }));
  if (next) { take(next); await nextRound(); } else { await refresh(); }
}

function readAnswer(form) {
  const answer = {};
  for (const name of ["count", "place", "day"]) if (form.elements[name]) answer[name] = Number(form.elements[name].value);
  if (form.elements.time) {
    const [hours, minutes] = form.elements.time.value.split(":").map(Number);
    answer.tick = Math.round((hours * 60 + minutes) / session.tick_minutes) % (1440 / session.tick_minutes);
  }
  return answer;
}

async function look() {
  waiting?.abort();
  waiting = new AbortController();
  const signal = waiting.signal, day = Number(byId("day").value);
  const days = Math.min(Number(byId("days").value), session.days.length - day);
  showChosen();
  const query = new URLSearchParams([...chosen.map((at) => ["place", at]), ["day", day], ["days", days]]);
  seen = await attempt(() => call(address(`/series?${query}`), { signal }));
  if (seen && session.round) showSeries();
  if (!signal.aborted && (!heat || heat.day !== day || heat.round !== session.round?.number)) {
    const of = session.round?.number;
    const found = await attempt(() => call(address(`/heat?day=${day}`), { signal }));
    if (found) { heat = { ...found, day, round: of }; showHeat(); }
  }
}

function showChosen() {
  byId("chosen").replaceChildren(...chosen.map((at, place) => element("span", { class: "chip series-chip" }, places[at].name,
    element("button", { type: "button", "aria-label": `Remove ${places[at].name}`, onclick: () => { chosen.splice(place, 1); if (!chosen.length) chosen = [0]; look(); } }, "×"))));
}

function showSeries() {
  const minutes = session.tick_minutes, ticks = 1440 / minutes, round = session.round;
  const labels = seen.days.flatMap((day) => Array.from({ length: ticks }, (_, tick) => seen.days.length === 1 ? timeOf(tick, minutes) : `${session.days[day]}, ${timeOf(tick, minutes)}`));
  byId("series-title").textContent = `People over time, ${session.days[seen.days[0]]}${seen.days.length > 1 ? ` and ${seen.days.length - 1} days more` : ""}`;
  const options = ({ ink, line, quiet, bad }) => ({
    color: LINES,
    grid: { left: 48, right: 18, top: 34, bottom: 62 },
    legend: { textStyle: { color: ink }, top: 2, type: "scroll" },
    tooltip: { trigger: "axis" },
    dataZoom: [{ type: "slider", height: 18, bottom: 8, textStyle: { color: quiet } }, { type: "inside" }],
    xAxis: { type: "category", data: labels, axisLabel: { color: quiet, hideOverlap: true }, axisLine: { lineStyle: { color: line } } },
    yAxis: { type: "value", axisLabel: { color: quiet }, splitLine: { lineStyle: { color: line } } },
    series: chosen.filter((at) => seen.places[at]).map((at, place) => ({
      name: places[at].name, type: "line", data: seen.places[at], showSymbol: false, lineStyle: { width: 1.6 }, step: "end",
      markLine: round?.threshold && at === round.place && place === 0 ? { silent: true, symbol: "none", label: { formatter: `more than ${round.threshold}`, color: bad, position: "insideEndTop" }, lineStyle: { color: bad }, data: [{ yAxis: round.threshold }] } : undefined,
    })),
  });
  seriesChart = redraw(seriesChart, "series", options, "Published counts over time");
}

function redraw(kept, id, options, label) {
  if (kept) { kept.options = options; kept.drawn.redraw(); return kept; }
  const made = { options };
  made.drawn = draw(byId(id), (theme) => made.options(theme), { label });
  return made;
}

function showHeat() {
  const slots = heat.colours[0].length;
  const order = [...heat.places].reverse();
  const middle = new Map(places.flatMap((floor, at) => { const rows = order.flatMap((one, row) => places[one].parent === at ? [row] : []); return floor.level === "floor" ? [[rows[rows.length >> 1], floor.name]] : []; }));
  const options = ({ quiet, line }) => ({
    grid: { left: 58, right: 14, top: 8, bottom: 30 },
    tooltip: { formatter: ({ value }) => `${places[order[value[1]]].name}\n${timeOf(value[0], heat.slot_minutes)}: ${value[3]} people` },
    xAxis: { type: "category", data: Array.from({ length: slots }, (_, slot) => timeOf(slot, heat.slot_minutes)), axisLabel: { color: quiet, hideOverlap: true }, axisLine: { lineStyle: { color: line } }, axisTick: { show: false } },
    yAxis: { type: "category", data: order.map((at) => places[at].name), axisLabel: { color: quiet, interval: (row) => middle.has(row), formatter: (_, row) => middle.get(row) ?? "" }, axisLine: { lineStyle: { color: line } }, axisTick: { show: false } },
    visualMap: { show: false, type: "piecewise", dimension: 2, pieces: COLOURS.map((colour, value) => ({ value, color: colour })) },
    series: [{ type: "heatmap", progressive: 0, data: order.flatMap((at, row) => { const place = heat.places.indexOf(at); return heat.colours[place].map((colour, slot) => [slot, row, colour, heat.values[place][slot]]); }) }],
  });
  heatChart = redraw(heatChart, "heat", options, "Heat map of the day: regions by quarters of an hour");
  if (!heatChart.listens) {
    heatChart.listens = true;
    heatChart.drawn.chart.on("click", ({ value }) => { byId("slot").value = value[0]; choose([...heat.places].reverse()[value[1]]); showFloors(); });
  }
  showFloors();
}

function showFloors() {
  const slot = Number(byId("slot").value);
  const end = Math.min(slot + Number(byId("span").value), heat.colours[0].length), mean = (series) => series.slice(slot, end).reduce((sum, one) => sum + one, 0) / (end - slot);
  byId("moment").textContent = end - slot === 1 ? timeOf(slot, heat.slot_minutes) : `${timeOf(slot, heat.slot_minutes)} to ${timeOf(end, heat.slot_minutes)}`;
  const floors = places.flatMap((place, at) => place.level === "floor" ? [{ ...place, at }] : []).reverse();
  byId("floors").replaceChildren(...floors.map((floor) => element("div", { class: "floor" }, element("span", {}, floor.name.replace("Floor ", "")),
    element("div", { class: "tiles" }, ...regions.filter((region) => region.parent === floor.at).map((region) => {
      const place = heat.places.indexOf(region.at), value = mean(heat.values[place]);
      return element("button", { type: "button", class: `tile heat-${Math.round(mean(heat.colours[place]))}${chosen.includes(region.at) ? " chosen" : ""}`, title: region.name,
        onclick: () => { choose(region.at); showFloors(); } }, element("b", {}, number(Math.round(10 * value) / 10)), ` ${short(region.name)}`);
    })))));
}

const short = (name) => name.replace("Main conference room", "Conference").replace("Meeting room", "Meeting").replace("Class room", "Class");

function choose(at) {
  chosen = chosen.includes(at) ? chosen : [...chosen, at].slice(-LINES.length);
  look();
}

function showFeedback(given) {
  const wrong = given.wrong_day ? ", on a wrong weekday" : "";
  const overlay = element("div", { class: "chart" });
  const way = `${given.way_text}${given.epsilon ? ` Epsilon was ${given.epsilon}.` : ""}`;
  const card = element("div", { class: "card" },
    element("div", { class: "verdict" },
      element("h1", { class: `figure ${given.points > 0 ? "good" : "bad"}` }, `+${number(given.points)}`),
      element("span", {}, `You said `, element("strong", {}, given.answer), `; the truth is `, element("strong", {}, given.truth), `: off by ${number(given.error)} ${given.unit}${wrong}.`),
      element("span", { class: "note" }, `accuracy ${percentOf(given.accuracy)} × speed ${percentOf(given.speed)} × rounds ${given.bonus.toFixed(1)}`)),
    element("p", {}, element("strong", {}, `This was ${given.way}. `), way, given.bot ? ` Who takes the published counts for true ones says ${given.bot}.` : ""),
    overlay,
    element("div", { class: "row" }, session.over ? null : element("button", { class: "primary", type: "button", id: "next", onclick: nextRound }, "Next round")));
  const alarm = given.alarm;
  const keyhole = element("div", { class: "card" },
    element("h2", {}, `Keyhole's answer at epsilon ${given.keys_epsilon}`),
    ...keySet(given.keys),
    element("p", {}, `Who reads the key set says `, element("strong", {}, given.keys.read), `: off by ${number(given.keys_error)} ${given.unit}.`),
    alarm ? element("p", {}, element("strong", {}, alarm.rang ? `A monitor's alarm rang at ${alarm.rang}. ` : "A monitor's alarm did not ring. "),
      `It looked ${alarm.looks} times, and affords a tolerance of ${alarm.tolerance}. Its ${number(alarm.loss)} is for all that somebody does in this room on that day, where noisy counts lose as much for each tick that they stay.`) : null);
  byId("feedback").replaceChildren(card, keyhole);
  byId("feedback").hidden = false;
  showOverlay(overlay, given.overlay);
  byId("next")?.focus();
}

const percentOf = (share) => `${Math.round(100 * share)} %`;

function showOverlay(holder, overlay) {
  const bars = overlay.kind === "bar";
  draw(holder, ({ ink, line, quiet, bad, accent, good }) => ({
    grid: { left: 48, right: 18, top: 34, bottom: bars ? 92 : 62 },
    legend: { textStyle: { color: ink }, top: 2, left: 96, right: 0, type: "scroll" },
    tooltip: { trigger: "axis" },
    dataZoom: bars ? [] : [{ type: "slider", height: 18, bottom: 8, textStyle: { color: quiet } }, { type: "inside" }],
    xAxis: { type: "category", data: overlay.labels, axisLabel: { color: quiet, hideOverlap: !bars, interval: bars ? 0 : "auto", rotate: bars ? 35 : 0, fontSize: 11 }, axisLine: { lineStyle: { color: line } } },
    yAxis: { type: "value", name: bars ? "person-hours" : "people", nameTextStyle: { color: quiet }, axisLabel: { color: quiet }, splitLine: { lineStyle: { color: line } } },
    series: [
      ...(overlay.published ? [{ name: "published", type: bars ? "bar" : "line", data: overlay.published, showSymbol: false, itemStyle: { color: quiet }, lineStyle: { width: 1, color: quiet, opacity: .65 } }] : []),
      { name: "true", type: bars ? "bar" : "line", data: overlay.true, showSymbol: false, itemStyle: { color: accent }, lineStyle: { width: 2.4, color: accent },
        markLine: { symbol: "none", silent: true, data: [
          ...(overlay.threshold ? [{ yAxis: overlay.threshold, label: { formatter: `more than ${overlay.threshold}`, color: bad, position: "insideEndTop" }, lineStyle: { color: bad } }] : []),
          ...overlay.marks.map((mark) => ({ xAxis: mark.at, label: { formatter: mark.name, color: mark.name === "truth" ? good : ink, position: mark.name === "truth" ? "end" : "insideEndTop" }, lineStyle: { color: mark.name === "truth" ? good : ink, type: mark.name === "truth" ? "solid" : "dashed" } })) ] } },
      ...(overlay.keys.length ? [{ name: "Keyhole's keys", type: "scatter", data: overlay.keys.map((at) => [at, 0]), symbolSize: 6, symbol: "rect", itemStyle: { color: good } }] : []),
    ],
  }), { label: "The true series, with what was published of it" });
}

function tick() {
  if (!session || session.over) return;
  const passed = (performance.now() - readAt) / 1000, left = session.seconds_left - passed;
  byId("left").textContent = clock(Math.max(0, left));
  byId("left").classList.toggle("hurry", left < 60);
  byId("used").textContent = session.round ? `${Math.floor(session.round.seconds + passed)} s` : "–";
  if (left <= 0) endSession();
}

async function endSession() {
  const next = await attempt(() => call(address("/end"), { body: {} }));
  if (next) { byId("feedback").replaceChildren(); take(next); }
}

byId("begin").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target, seed = form.elements.seed.value;
  const body = { name: form.elements.name.value, teaching: form.elements.teaching.checked };
  if (seed) body.seed = Number(seed);
  form.querySelector("button").disabled = true;
  const begun = await attempt(() => call(`${API}/sessions`, { body }));
  form.querySelector("button").disabled = false;
  if (begun) { byId("feedback").replaceChildren(); heat = null; take(begun); await nextRound(); }
});
byId("answer").addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = event.target.querySelector("button");
  button.disabled = true;
  waiting?.abort();
  const answered = await attempt(() => call(address("/answer"), { body: readAnswer(event.target) }));
  button.disabled = false;
  if (answered) { take(answered.session); showFeedback(answered.feedback); } else { await refresh(); }
});
byId("end").addEventListener("click", endSession);
byId("level").addEventListener("change", fillPlaces);
byId("add").addEventListener("click", () => choose(Number(byId("place").value)));
byId("day").addEventListener("change", look);
byId("days").addEventListener("change", look);
for (const id of ["slot", "span"]) byId(id).addEventListener("input", () => heat && showFloors());
fill("days", Array.from({ length: told.most_days }, (_, at) => [at + 1, at ? `${at + 1} days` : "1 day"]));
const linked = new URLSearchParams(location.search).get("seed");
if (linked) { byId("begin").elements.seed.value = linked; byId("begin").querySelector("details").open = true; }
setInterval(tick, 250);
showBoard();
let kept = "";
try { kept = sessionStorage.getItem(STORED) ?? ""; } catch { /* nothing is kept */ }
if (kept) {
  session = { key: kept };
  call(address("")).then((found) => { if (!found.over) { take(found); if (found.round) showRound(); else nextRound(); } }).catch(() => { session = null; });
}
