// An answer: what it promises and cost, a picture over two keys, and a table of the same.
import { call, data, element, fill, visible } from "./api.js";
import { draw } from "./chart.js";
import { epsilon } from "./price.js";

const ROWS = 200; // of the table at first: more on demand
const PLACE = "place in ranking"; // a column of a ranking's answer
const MOST_CELLS = 40_000; // of a picture: a screen has no room for more

const seemsNumber = (values) => values.every((value) => value !== "" && Number.isFinite(Number(value)));
const inOrder = (values) => (seemsNumber(values) ? [...values].sort((a, b) => a - b) : [...values].sort());

function facts(told) {
  const list = [element("p", { class: "guarantee" }, told.guarantee.sentence)];
  for (const sentence of told.numbers?.sentences ?? []) list.push(element("p", { class: "note" }, sentence));
  if (told.cost) list.push(element("p", {}, told.cost.sentence));
  if (told.reused) list.push(element("p", { class: "good" }, "Released before: the same answer, and nothing was spent of the shared budget."));
  if (told.shared_noise) list.push(element("p", { class: "note" }, told.shared_noise));
  list.push(element("p", { class: "note" }, `Data version ${told.data_version}. At most ${epsilon(told.guarantee.epsilon_at_most)} ε a group.`));
  return element("div", { class: "facts" }, ...list);
}

// Rows as they are shown: keys, then what a scorecard says of each.
function rowsOf(told, keys) {
  if (told.shown) {
    const places = keys.map((key) => told.columns.indexOf(key));
    const own = told.shown.columns.map((name, place) => ({ name, place })).filter(({ name }) => !keys.includes(name));
    return { columns: [...keys, ...own.map((one) => one.name)], rows: told.keys.map((key, number) =>
      [...places.map((place) => key[place]), ...own.map(({ place }) => told.shown.rows[number][place])]) };
  }
  return { columns: told.columns, rows: told.keys };
}

function table(columns, rows) {
  const body = element("tbody");
  const more = element("button", { type: "button" });
  let shown = 0;
  const show = () => {
    const next = rows.slice(shown, shown + ROWS);
    body.append(...next.map((row) => element("tr", {}, ...row.map((value) => element("td", {}, value === null ? "" : visible(value))))));
    shown += next.length;
    more.hidden = shown >= rows.length;
    more.textContent = `Show ${Math.min(ROWS, rows.length - shown)} more`;
  };
  more.addEventListener("click", show);
  show();
  return element("div", {}, element("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "The groups of the answer" }, element("table", {},
    element("thead", {}, element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)))), body)), more);
}

async function domain(name, column, rows, place) {
  const found = new Set(rows.map((row) => row[place]));
  const declared = data("catalog").tables.find((one) => one.name === name)?.keys.some((one) => one.name === column);
  if (!declared) return inOrder([...found]);
  try {
    const { values } = await call(`/console/api/values?table=${encodeURIComponent(name)}&column=${encodeURIComponent(column)}`);
    const known = new Set(values);
    return [...found].every((value) => known.has(value)) ? values : [...values, ...[...found].filter((value) => !known.has(value))];
  } catch {
    return inOrder([...found]);
  }
}

// The map of bands: one square a pair of key values, filled by what the answer says of it.
async function picture(holder, told, { name, keys, columns, rows, sql }) {
  const place = (key) => columns.indexOf(key);
  const domains = new Map();
  await Promise.all(keys.map(async (key) => domains.set(key, await domain(name, key, rows, place(key)))));
  const wide = [...keys].sort((a, b) => domains.get(b).length - domains.get(a).length);
  const own = columns.filter((column) => !keys.includes(column));
  const choose = (label, options, chosen) => {
    const select = element("select", { class: "short", onchange: () => redraw() }, ...options.map((one) => element("option", { selected: one === chosen }, one)));
    return { select, label: options.length > 1 ? element("label", { class: "inline" }, label, select) : null };
  };
  const down = choose("Down", keys, wide[0]), across = choose("Across", keys, wide[1]), shows = choose("Shows", own.length ? own : ["in the answer"], own[0] ?? "in the answer");
  const box = element("div", { class: "chart" }), said = element("p", { class: "note" });
  fill(holder, element("div", { class: "row" }, down.label, across.label, shows.label), box, said);
  let chart = null;
  let options = null;
  const redraw = () => {
    let [y, x] = [down.select.value, across.select.value];
    if (x === y) { x = keys.find((key) => key !== y); across.select.value = x; }
    const ys = domains.get(y), xs = domains.get(x);
    if (xs.length * ys.length > MOST_CELLS) { said.textContent = `${(xs.length * ys.length).toLocaleString("en")} squares are too many for a picture; the table has the groups.`; box.hidden = true; return; }
    box.hidden = false;
    const at = own.length ? place(shows.select.value) : -1;
    const xAt = new Map(xs.map((value, number) => [value, number])), yAt = new Map(ys.map((value, number) => [value, number]));
    const levels = at < 0 ? ["not in the answer", "in the answer"] : ["no row", ...levelsOf(rows.map((row) => row[at]), sql)];
    const cells = new Int16Array(xs.length * ys.length);
    for (const row of rows) {
      const cell = yAt.get(row[place(y)]) * xs.length + xAt.get(row[place(x)]);
      cells[cell] = Math.max(cells[cell], at < 0 ? 1 : levels.indexOf(String(row[at])));
    }
    box.style.height = `${Math.min(1400, Math.max(220, 110 + ys.length * (ys.length > 60 ? 8 : 19)))}px`;
    options = (ink) => heatMap(ink, { x, y, xs, ys, cells, levels, others: keys.length > 2 });
    if (chart) { chart.chart.resize(); chart.redraw(); } else {
      chart = draw(box, (ink) => options(ink), { label: `${y} by ${x}: ${rows.length} groups; the table below has the same` });
    }
    const inside = cells.reduce((sum, level) => sum + (level > 0 ? 1 : 0), 0);
    said.textContent = `${inside.toLocaleString("en")} of ${cells.length.toLocaleString("en")} squares are in the answer${keys.length > 2 ? "; a square has the highest over the other keys" : ""}.`;
  };
  redraw();
}

// The levels of a column, the lowest first. Words of a CASE stand in the order in which it tests them: the first is the
// highest, as people write them.
const levelsOf = (values, sql) => {
  const texts = [...new Set(values.map(String))];
  const places = new Map(texts.map((one) => [one, sql.indexOf(`'${one.replaceAll("'", "''")}'`)]));
  if (texts.every((one) => places.get(one) >= 0)) return texts.sort((a, b) => places.get(b) - places.get(a));
  if (texts.every((one) => one === "true" || one === "false")) return ["false", "true"];
  return inOrder(texts);
};

// Cut in the text itself: a label that is only drawn shorter still takes the whole one's room, and hides its neighbours.
const short = (most) => (name) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

function heatMap(ink, { x, y, xs, ys, cells, levels }) {
  const steps = levels.length - 1;
  const shades = levels.map((_, number) => (number === 0 ? ink.soft : mix(ink.soft, ink.accent, steps <= 1 ? 1 : 0.25 + (0.75 * (number - 1)) / (steps - 1))));
  if (levels[0] !== "not in the answer") shades[0] = ink.raised;
  const used = new Set(cells);
  const items = Array.from(cells, (level, number) => [number % xs.length, Math.floor(number / xs.length), level]);
  return {
    grid: { left: 8, right: 16, top: 40, bottom: 8, containLabel: true },
    tooltip: { formatter: ({ value }) => `${plain(ys[value[1]])} / ${plain(xs[value[0]])}\n${plain(levels[value[2]])}` },
    xAxis: { type: "category", data: xs.map(plain), position: "bottom", axisLabel: { color: ink.ink, rotate: xs.length > 14 ? 55 : 0, formatter: short(16) }, axisLine: { lineStyle: { color: ink.line } }, splitArea: { show: false }, name: plain(x) },
    yAxis: { type: "category", data: ys.map(plain), inverse: true, axisLabel: { color: ink.ink, formatter: short(20) }, axisLine: { lineStyle: { color: ink.line } } },
    visualMap: { type: "piecewise", orient: "horizontal", top: 4, left: 8, textStyle: { color: ink.ink }, pieces: levels.map((label, number) => ({ value: number, label: plain(label), color: shades[number] })).filter((piece) => used.has(piece.value)) },
    series: [{ type: "heatmap", data: items, progressive: 0, itemStyle: { borderColor: ink.raised, borderWidth: xs.length * ys.length > 4000 ? 0 : 1 }, emphasis: { itemStyle: { borderColor: ink.ink } } }],
  };
}

// ECharts gives braces and bars in drawn texts a meaning; keys are text, whatever they look like.
const plain = (text) => visible(text).replace(/[{}|]/g, (found) => ({ "{": "\uff5b", "}": "\uff5d", "|": "\uff5c" })[found]).slice(0, 80);

function mix(from, to, share) {
  const [a, b] = [from, to].map((one) => (one.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number));
  return `rgb(${a.map((value, number) => Math.round(value + (b[number] - value) * share)).join(",")})`;
}

export async function showAnswer(holder, told, { explained, sql, tookMs }) {
  const others = [...Object.keys(told.guarantee.predicates ?? {}), PLACE];
  const named = explained?.grouped_by;
  const keys = named?.every((key) => told.columns.includes(key)) ? named : told.columns.filter((name) => !others.includes(name));
  const { columns, rows } = rowsOf(told, keys);
  const head = element("p", { class: "figure" }, `${told.count.toLocaleString("en")} ${told.count === 1 ? "group" : "groups"}`);
  const beside = element("small", {}, ` of ${(explained?.keys ?? told.count).toLocaleString("en")}, in ${Math.round(tookMs)} ms`);
  head.append(beside);
  const drawn = element("div");
  const cut = told.keys.length < told.count
    ? element("p", { class: "warn" }, `The first ${told.keys.length.toLocaleString("en")} are here; REST has them all.`) : null;
  holder.replaceChildren(...[element("div", { class: "two" }, element("div", {}, head, cut, drawn), facts(told)),
    element("h3", {}, "As a table"), rows.length ? table(columns, rows) : element("p", {}, "No group qualifies.")]);
  if (keys.length > 1 && rows.length && explained) await picture(drawn, told, { name: explained.table, keys, columns, rows: rows.map((row) => row.map((value) => value ?? "NULL")), sql });
}
