// What is added up or counted, as people choose it: the function, the column or a calculation, and which rows count.
import { element } from "./api.js";
import { calendarOf, joinedColumns, ownColumns, tableOf, unique } from "./question_sql.js";

const FUNCTIONS = [
  ["count", "count of rows"], ["count values", "count of values of"], ["count distinct", "count of different"],
  ["sum", "sum of"], ["avg", "average of"], ["min", "least"], ["max", "greatest"],
];
export const RANKED_BY = ["count", "count values", "count distinct", "sum"];
const CALCULATION = "=";

export const newAggregate = (table) => {
  const unit = table.unit_columns[0];
  return { function: unit ? "count distinct" : "count", column: unit?.name ?? null, of: "", expression: null, filter: "" };
};

// The columns that a function may be of.
function columnsFor(model, catalog, chosen) {
  const table = tableOf(model, catalog), joined = joinedColumns(model, catalog);
  const numbers = joined.filter((one) => one.number);
  switch (chosen) {
    case "count": return [];
    case "count distinct": return unique([...table.unit_columns, ...table.others, ...table.measures, ...table.keys]);
    case "count values": return ownColumns(table);
    case "min": case "max": return unique([...table.measures, ...table.others, ...numbers]);
    default: return unique([...table.measures, ...numbers]);
  }
}

const chosenOf = (node) => (node.function === "count" && (node.column !== null || node.expression !== null) ? "count values" : node.function);

// The thresholds that the owner proposes for an aggregate.
export function proposedFor(node, table) {
  if (node.over || node.expression !== null) return [];
  if (node.column === null) return table.bands.rows ?? [];
  if (node.function === "count distinct") return table.bands.units ?? [];
  return node.of ? [] : table.measures.find((one) => one.name === node.column)?.bands?.[node.function] ?? [];
}

// Fields that change `node`; `edit` redraws, `type` does not. `chosen` is told of another function or column.
export function drawAggregate({ model, catalog, edit, type }, node, place, { only = null, label = "What is compared", changed = () => {} } = {}) {
  const table = tableOf(model, catalog);
  const current = chosenOf(node);
  const functions = FUNCTIONS.filter(([name]) => (!only || only.includes(name)) && (name === "count" || name === current || columnsFor(model, catalog, name).length));
  const columns = columnsFor(model, catalog, current).map((one) => ({ ...one, of: one.of ?? "" }));
  if (node.column !== null && !columns.some((one) => one.name === node.column && one.of === node.of)) columns.push({ name: node.column, of: node.of });
  const fn = element("select", { class: "short", "aria-label": label, data: { focus: `${place} fn` },
    onchange: (event) => edit(() => {
      const wanted = event.target.value, possible = columnsFor(model, catalog, wanted);
      node.function = wanted === "count values" ? "count" : wanted;
      if (wanted === "count") Object.assign(node, { column: null, of: "", expression: null });
      else if (node.expression === null && !possible.some((one) => one.name === node.column && (one.of ?? "") === node.of)) {
        Object.assign(node, { column: possible[0]?.name ?? null, of: possible[0]?.of ?? "" });
      }
      changed(proposedFor(node, table));
    }) }, ...functions.map(([name, text]) => element("option", { value: name, selected: name === current }, text)));
  if (current === "count") return [fn];
  const column = element("select", { class: "short", "aria-label": "Column", data: { focus: `${place} column` },
    onchange: (event) => edit(() => {
      const at = event.target.value;
      if (at === CALCULATION) Object.assign(node, { expression: node.column ?? "", column: null, of: "" });
      else Object.assign(node, { column: columns[Number(at)].name, of: columns[Number(at)].of, expression: null });
      changed(proposedFor(node, table));
    }) },
    ...columns.map((one, number) => element("option", { value: String(number), selected: node.expression === null && one.name === node.column && one.of === node.of }, one.of ? `${one.of}.${one.name}` : one.name)),
    element("option", { value: CALCULATION, selected: node.expression !== null }, "a calculation …"));
  const calculation = node.expression === null ? null : element("input", {
    class: "short", value: node.expression, spellcheck: "false", autocomplete: "off", "aria-label": "Calculation over columns of a row", placeholder: "price * quantity",
    data: { focus: `${place} expression` }, oninput: (event) => type(() => { node.expression = event.target.value; }) });
  return [fn, column, calculation];
}

// Which rows count, and of what it is a share: folded away until somebody wants it.
export function drawMore({ model, catalog, edit, type }, node, place, { shares = false } = {}) {
  const table = tableOf(model, catalog);
  const filter = element("label", {}, "Of the rows where", element("input", { value: node.filter, spellcheck: "false", placeholder: "condition", data: { focus: `${place} filter` },
    oninput: (event) => type(() => { node.filter = event.target.value; }) }));
  const share = shares ? element("label", { class: "inline meant" }, element("input", { type: "checkbox", checked: Boolean(node.over), data: { focus: `${place} share` },
    onchange: (event) => edit(() => {
      if (event.target.checked) Object.assign(node, { factor: "1.0", over: { function: "count", column: null, of: "", expression: null, filter: "" }, value: "0.5" });
      else { delete node.over; delete node.factor; node.value = newValue(node, table); }
    }) }), "as a share: divided by") : null;
  const over = node.over ? element("div", { class: "row" }, ...drawAggregate({ model, catalog, edit, type }, node.over, `${place} over`, { label: "What it is divided by" }).filter(Boolean)) : null;
  return element("details", { open: Boolean(node.filter || node.over) }, element("summary", { class: "note" }, shares ? "some rows alone, or a share" : "of some rows alone"),
    element("div", { class: "stack" }, ...[filter, share, over].filter(Boolean)));
}

// What a test may be compared with, by the name in the tree: windows over groups stand in columns alone.
const ADDED = ["count", "sum"];
export function comparedWith(node, { model, catalog }, windows) {
  const options = [["", "a number"]];
  if (node.over || !ADDED.includes(node.function) || (model.joins.length && !windows)) return options;
  options.push(["total", "× all groups together"], ["average", "× the average of all groups"]);
  const calendar = windows && calendarOf(model, catalog);
  return calendar ? [...options, ["before", `× the ${calendar.name} before`]] : options;
}

// A threshold to begin with: the owner's first, where one is proposed.
export const newValue = (node, table) => proposedFor(node, table)[0] ?? "100";
