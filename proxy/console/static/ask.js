// The page that asks: builder and SQL follow each other, the price follows both, the answer comes once.
import { call, data, debounce, element, Problem, problemBox } from "./api.js";
import { Builder } from "./builder.js";
import { drawCheaper, drawPrice, drawProposals } from "./price.js";

const SOON_MS = 90; // of stillness before a price is asked for: shorter than a pause between words, longer than between keys
const LATER_MS = 450; // before the dearer look for what would be cheaper

const catalog = data("catalog");
const at = (id) => document.getElementById(id);
const sql = at("sql"), price = at("price"), cheaper = at("cheaper"), ask = at("ask");
const settings = {};
let explained = null;
let key = null, keyOf = null;
let parameterDefaults = [];

const builder = new Builder(at("builder"), catalog, (text) => { sql.value = text; refresh(); });

function request() {
  const body = { sql: sql.value, ...settings };
  const parameters = [...at("parameters").querySelectorAll("input")].map((one) => (one.value === "" ? null : one.value));
  if (parameters.length) body.parameters = parameters;
  return body;
}

// One key for one question: a second click on the same button asks the same, and pays once.
function idempotencyKey(body) {
  const text = JSON.stringify(body);
  if (text !== keyOf) {
    keyOf = text;
    key = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }
  return key;
}

// Whether a request was given up for a newer one; whatever is neither that nor a refusal is a mistake of ours.
function isOver(error) {
  if (error.name === "AbortError") return true;
  if (!(error instanceof Problem)) throw error;
  return false;
}

let running = null;
async function explain() {
  running?.abort();
  const mine = (running = new AbortController());
  if (!sql.value.trim()) { price.replaceChildren(element("p", { class: "note" }, "Choose what each answer is for.")); return; }
  try {
    const told = await call("/console/api/explain", { body: request(), signal: mine.signal });
    if (mine !== running) return;
    explained = told;
    drawPrice(price, told, use);
    drawPicture(told);
    price.dataset.state = "told";
    ask.disabled = false;
  } catch (error) {
    if (isOver(error) || mine !== running) return;
    explained = null;
    price.replaceChildren(problemBox(error.told), ...drawProposals(error.told.hint, use));
    drawPicture(null);
    price.dataset.state = "refused";
    cheaper.replaceChildren();
    if (error.status === 429 || error.status === 503) setTimeout(explain, 1000 * (error.waitS || 1));
  }
}

let looking = null;
async function lookForCheaper() {
  looking?.abort();
  const mine = (looking = new AbortController());
  if (!explained) return;
  try {
    const { levers } = await call("/console/api/cheaper", { body: request(), signal: mine.signal });
    if (mine === looking) drawCheaper(cheaper, levers, explained?.worst_case_epsilon, use);
  } catch (error) {
    if (isOver(error)) return;
    if (mine === looking) cheaper.replaceChildren();
  }
}

const explainSoon = debounce(explain, SOON_MS), cheaperLater = debounce(lookForCheaper, LATER_MS);
function refresh() {
  running?.abort(); // what is under way is of the text before
  running = null;
  price.dataset.state = "asked";
  drawParameters();
  explainSoon();
  cheaperLater();
}

let reading = null;
const readTree = debounce(async () => {
  reading?.abort();
  const mine = (reading = new AbortController());
  try {
    const tree = await call("/console/api/tree", { body: { sql: sql.value }, signal: mine.signal });
    if (mine !== reading) return;
    showBuilder(tree.builds, tree.why);
    if (tree.builds) builder.show(tree);
  } catch (error) {
    if (isOver(error)) return;
    if (mine === reading) showBuilder(false, "The text is no question yet.");
  }
}, 250);

function showBuilder(shows, why = "") {
  at("builder").hidden = !shows;
  at("unbuilt").hidden = shows;
  at("unbuilt").textContent = shows ? "" : `The builder does not draw this: ${why} Its SQL can be edited and asked all the same.`;
}

// The formula as it is evaluated, drawn by the server as `EXPLAIN` has it; an image runs nothing and loads nothing.
function drawPicture(told) {
  const holder = at("picture");
  holder.hidden = !told?.picture;
  if (holder.hidden) return;
  const image = element("img", { alt: `${told.letters}, where ${told.literals.map((one) => `${one.letter} is ${one.text}`).join(", ") || "nothing depends on data"}`, src: `data:image/svg+xml,${encodeURIComponent(told.picture)}` });
  at("picture-body").replaceChildren(image);
}

function drawParameters() {
  const count = Math.max(0, ...[...sql.value.matchAll(/\$(\d{1,3})/g)].map((match) => Number(match[1])));
  const holder = at("parameters");
  if (holder.children.length === count) return;
  holder.replaceChildren(...Array.from({ length: Math.min(count, 50) }, (_, number) => element("label", {}, `$${number + 1} ${parameterDefaults[number]?.name ?? ""}`,
    element("input", { value: parameterDefaults[number]?.default ?? "", oninput: refresh }))));
}

// Sliders: logarithmic, since halving an error costs about the same wherever one is.
const SLIDERS = [
  { name: "tolerance", label: "Tolerance", usual: parseFloat(catalog.usual.tolerance) || 10, least: 1, most: 100, send: (value) => `${value}%`, show: (value) => `${value} % of each threshold` },
  { name: "fnr", label: "Missed at most", usual: catalog.usual.fnr * 100, least: 0.1, most: 45, send: (value) => Number((value / 100).toFixed(6)), show: (value) => `${value} % of groups that qualify` },
  { name: "fpr", label: "Wrong at most", usual: catalog.usual.fpr * 100, least: 0.1, most: 45, send: (value) => Number((value / 100).toFixed(6)), show: (value) => `${value} % of groups beyond the tolerance` },
  { name: "min_rows", label: "Averages are of groups of at least", usual: catalog.usual.min_rows, least: 1, most: 10000, send: (value) => Math.round(value), show: (value) => `${Math.round(value).toLocaleString("en")} rows` },
];
const STEPS = 200;
const round = (value) => Number(value.toPrecision(value >= 10 ? 3 : 2));
const setters = {};

function drawSliders() {
  at("sliders").replaceChildren(...SLIDERS.map((one) => {
    const toStep = (value) => Math.round((STEPS * Math.log(value / one.least)) / Math.log(one.most / one.least));
    const toValue = (step) => round(one.least * (one.most / one.least) ** (step / STEPS));
    const said = element("output", { class: "note" }, one.show(round(one.usual)));
    const range = element("input", { type: "range", min: 0, max: STEPS, value: String(toStep(one.usual)), "aria-label": one.label, "aria-valuetext": one.show(round(one.usual)) });
    const set = (value, from) => {
      if (typeof value === "string") { // a tolerance for each aggregate has no place on the slider
        said.textContent = value;
        settings[one.name] = value;
        refresh();
        return;
      }
      if (from !== range) range.value = String(toStep(value));
      said.textContent = one.show(value);
      range.setAttribute("aria-valuetext", one.show(value));
      settings[one.name] = one.send(value);
      refresh();
    };
    range.addEventListener("input", () => set(toValue(Number(range.value)), range));
    setters[one.name] = set;
    return element("div", {}, element("div", { class: "row spread" }, element("strong", {}, one.label), said), range);
  }), drawNumbers());
}

// What stands in a column that asks how large a group is.
const NUMBERS = [["null", "nothing (NULL)"], ["threshold", "the bound that HAVING proves"], ["bands", "the lower edge of its band, at a price"], ["refuse", "an error"]];
function drawNumbers() {
  const select = element("select", { class: "short", onchange: (event) => { settings.numbers = event.target.value; refresh(); } },
    ...NUMBERS.map(([value, text]) => element("option", { value, selected: value === catalog.usual.numbers }, text)));
  return element("label", { class: "row spread" }, element("strong", {}, "A count or sum beside the keys shows"), select);
}

function use(...changes) {
  for (const { setting, value } of changes) {
    if (setting === "tolerance" && !/^[\d.]+ ?%$/.test(value)) { setters.tolerance?.(value); continue; }
    const number = setting === "tolerance" ? parseFloat(value) : setting === "min_rows" ? Number(value) : value * 100;
    setters[setting]?.(round(number));
  }
}

function forgetSliders() {
  for (const name of Object.keys(settings)) delete settings[name];
  drawSliders();
  refresh();
}

async function askNow() {
  forgetHint();
  const body = request();
  ask.disabled = true;
  ask.textContent = "Asking …";
  const holder = at("answer"), inside = at("answer-body");
  try {
    const started = performance.now();
    const plan = explained ?? (await call("/console/api/explain", { body }).catch(() => null));
    const [told, { showAnswer }] = await Promise.all([call("/console/api/question", { body, key: idempotencyKey(body) }), import("./answer.js")]);
    holder.hidden = false;
    await showAnswer(inside, told, { explained: plan, sql: body.sql, tookMs: performance.now() - started });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    holder.hidden = false;
    inside.replaceChildren(problemBox(error.told));
  } finally {
    ask.disabled = false;
    ask.textContent = "Ask";
  }
  at("answer-title").focus({ preventScroll: true });
  holder.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth", block: "start" });
  refresh();
}

function openStored(name) {
  const found = catalog.stored.find((one) => one.name === name);
  if (!found) { builder.start(); showBuilder(true); sql.value = builder.sql; parameterDefaults = []; refresh(); return; }
  parameterDefaults = found.parameters;
  sql.value = found.sql;
  at("parameters").replaceChildren();
  readTree();
  refresh();
}

sql.addEventListener("input", () => { readTree(); refresh(); });
sql.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) askNow(); });
ask.addEventListener("click", askNow);
at("stored")?.addEventListener("change", (event) => openStored(event.target.value));

// The hint for who comes for the first time: until it was read, or a question was asked.
const HINT = "keyhole-hint-seen";
const forgetHint = () => { localStorage.setItem(HINT, "yes"); at("first-visit").hidden = true; };
at("first-visit").hidden = localStorage.getItem(HINT) !== null;
at("seen").addEventListener("click", forgetHint);

drawSliders();
at("usual").addEventListener("click", forgetSliders);
const wanted = new URLSearchParams(location.search);
builder.start(wanted.get("table"));
sql.value = builder.sql;
if (wanted.get("sql")) { sql.value = wanted.get("sql"); readTree(); }
if (wanted.get("stored")) { const select = at("stored"); if (select) select.value = wanted.get("stored"); openStored(wanted.get("stored")); }
refresh();
