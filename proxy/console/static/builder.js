// The builder: a question as a tree of tests, and the SQL it writes. The other way round, from SQL to a tree, is the
// server's parser; what has no form here stays a text in its place.
import { element } from "./api.js";

const OPERATORS = [">", ">=", "<", "<=", "=", "<>"];
const FUNCTIONS = [
  ["count", "count of rows"], ["count distinct", "count of different"], ["sum", "sum of"], ["avg", "average of"],
  ["min", "least"], ["max", "greatest"],
];

const newTest = (table) => {
  const unit = table.unit_columns[0];
  const band = unit ? table.bands.units?.[0] : table.bands.rows?.[0];
  return { kind: "test", function: unit ? "count distinct" : "count", column: unit?.name ?? null, filter: "", operator: ">", value: band ?? "100" };
};

// The names a test may be about, with their SQL.
function columnsFor(table, chosen) {
  if (chosen === "count") return [];
  if (chosen === "count distinct") return [...table.unit_columns, ...table.others, ...table.measures, ...table.keys];
  return [...table.measures, ...(chosen === "min" || chosen === "max" ? table.others : [])];
}

const unique = (columns) => [...new Map(columns.map((one) => [one.name, one])).values()];

export function writeTest(test, table) {
  const every = [...table.unit_columns, ...table.keys, ...table.measures, ...table.others];
  const named = every.find((one) => one.name === test.column)?.sql ?? test.column;
  const over = test.column === null ? "*" : test.function === "count distinct" ? `DISTINCT ${named}` : named;
  const call = `${test.function === "count distinct" ? "count" : test.function}(${over})`;
  return `${call}${test.filter.trim() ? ` FILTER (WHERE ${test.filter.trim()})` : ""} ${test.operator} ${test.value === "" ? "0" : test.value}`;
}

function writeNode(node, table, inside = "") {
  switch (node.kind) {
    case "test": return writeTest(node, table);
    case "text": return inside ? `(${node.text})` : node.text;
    case "not": return `NOT (${writeNode(node.child, table)})`;
    default: {
      const parts = node.children.map((child) => writeNode(child, table, node.kind)).filter(Boolean);
      const joined = parts.join(` ${node.kind.toUpperCase()} `);
      return inside && inside !== node.kind && parts.length > 1 ? `(${joined})` : joined;
    }
  }
}

export function writeSql(model, table) {
  const keys = model.keys.map((name) => table.keys.find((key) => key.name === name)?.sql ?? name).join(", ");
  const having = model.having ? writeNode(model.having, table) : "";
  return [
    `SELECT ${keys}`, `FROM ${table.sql}`, model.where.trim() ? `WHERE ${model.where.trim()}` : "",
    `GROUP BY ${keys}`, having ? `HAVING ${having}` : "",
  ].filter(Boolean).join("\n");
}

export class Builder {
  constructor(holder, catalog, changed) {
    this.holder = holder;
    this.catalog = catalog;
    this.changed = changed;
  }

  get table() { return this.catalog.tables.find((one) => one.name === this.model.table) ?? this.catalog.tables[0]; }
  get sql() { return this.model.keys.length ? writeSql(this.model, this.table) : ""; }

  start(name) {
    const table = this.catalog.tables.find((one) => one.name === name) ?? this.catalog.tables.find((one) => one.keys.length) ?? this.catalog.tables[0];
    this.show({ table: table.name, keys: table.keys.slice(0, 1).map((key) => key.name), where: "", having: { kind: "and", children: [newTest(table)] } });
  }

  show(model) {
    const having = model.having === null ? { kind: "and", children: [] }
      : ["and", "or"].includes(model.having.kind) ? model.having : { kind: "and", children: [model.having] };
    this.model = { ...model, having };
    this.draw();
  }

  edit(work) { work(); this.draw(); this.changed(this.sql); }
  type(work) { work(); this.changed(this.sql); }

  draw() {
    const focused = document.activeElement?.dataset?.focus;
    const table = this.table;
    const tables = element("select", { data: { focus: "table" }, onchange: (event) => { this.start(event.target.value); this.changed(this.sql); } },
      ...this.catalog.tables.map((one) => element("option", { value: one.name, selected: one.name === table.name }, one.name)));
    const keys = element("fieldset", { class: "plain" }, element("legend", {}, "One answer for each"),
      element("div", { class: "row" }, ...table.keys.map((key) => element("label", { class: "inline chip" },
        element("input", { type: "checkbox", checked: this.model.keys.includes(key.name), data: { focus: `key ${key.name}` },
          onchange: (event) => this.edit(() => {
            const chosen = new Set(this.model.keys);
            event.target.checked ? chosen.add(key.name) : chosen.delete(key.name);
            this.model.keys = table.keys.map((one) => one.name).filter((name) => chosen.has(name));
          }) }), `${key.name} (${key.values.toLocaleString("en")})`))),
      this.model.keys.length ? null : element("p", { class: "bad" }, "Choose at least one."));
    const where = element("label", {}, "Of the rows where (optional)",
      element("input", { value: this.model.where, spellcheck: "false", placeholder: table.others[0] ? `${table.others[0].sql} = …` : "", data: { focus: "where" },
        oninput: (event) => this.type(() => { this.model.where = event.target.value; }) }));
    this.holder.replaceChildren(element("div", { class: "stack" },
      element("label", {}, "Table", tables), keys, where,
      element("div", {}, element("p", { class: "tree-title" }, "Groups in which"), this.drawNode(this.model.having, null, "0"))));
    if (focused) this.holder.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
  }

  drawNode(node, remove, place) {
    if (node.kind === "test") return this.drawTest(node, remove, place);
    const gone = remove ? element("button", { type: "button", class: "quiet", "aria-label": "Remove", onclick: remove }, "✕") : null;
    if (node.kind === "text") return element("div", { class: "row test" }, element("code", {}, node.text), gone);
    if (node.kind === "not") {
      return element("div", { class: "branch" }, element("div", { class: "row" }, element("strong", {}, "not"), gone),
        this.drawNode(node.child, () => this.edit(() => remove?.()), `${place}.0`));
    }
    const children = node.children;
    const kind = element("select", { class: "short", "aria-label": "Which of these must hold", data: { focus: `${place} kind` },
      onchange: (event) => this.edit(() => { node.kind = event.target.value; }) },
      element("option", { value: "and", selected: node.kind === "and" }, "all of these hold (AND)"),
      element("option", { value: "or", selected: node.kind === "or" }, "any of these holds (OR)"));
    const list = element("ul", { class: "tree" }, ...children.map((child, number) => element("li", {},
      this.drawNode(child, () => this.edit(() => children.splice(number, 1)), `${place}.${number}`))));
    const other = node.kind === "and" ? "or" : "and";
    return element("div", { class: `branch ${node.kind}` },
      element("div", { class: "row" }, children.length > 1 || remove ? kind : null, gone), list,
      element("div", { class: "row" },
        element("button", { type: "button", class: "quiet", data: { focus: `${place} add` }, onclick: () => this.edit(() => children.push(newTest(this.table))) }, "+ test"),
        element("button", { type: "button", class: "quiet", data: { focus: `${place} group` },
          onclick: () => this.edit(() => children.push({ kind: other, children: [newTest(this.table), newTest(this.table)] })) },
          `+ ${other.toUpperCase()} group`)));
  }

  drawTest(node, remove, place) {
    const table = this.table;
    const columns = unique(columnsFor(table, node.function));
    const functions = FUNCTIONS.filter(([name]) => name === "count" || columnsFor(table, name).length);
    const measure = table.measures.find((one) => one.name === node.column);
    const proposed = (node.column === null ? table.bands.rows : node.function === "count distinct" ? table.bands.units : measure?.bands?.[node.function]) ?? [];
    const listId = `bands ${place}`.replace(/\W/g, "-");
    const fn = element("select", { class: "short", "aria-label": "What is compared", data: { focus: `${place} fn` },
      onchange: (event) => this.edit(() => {
        node.function = event.target.value;
        const possible = columnsFor(table, node.function);
        node.column = possible.some((one) => one.name === node.column) ? node.column : possible[0]?.name ?? null;
        const bands = table.measures.find((one) => one.name === node.column)?.bands?.[node.function];
        if (bands?.length) node.value = bands[0];
      }) }, ...functions.map(([name, label]) => element("option", { value: name, selected: name === node.function }, label)));
    const column = columns.length === 0 ? null : element("select", { class: "short", "aria-label": "Column", data: { focus: `${place} column` },
      onchange: (event) => this.edit(() => { node.column = event.target.value; }) },
      ...columns.map((one) => element("option", { value: one.name, selected: one.name === node.column }, one.name)));
    const operator = element("select", { class: "tiny", "aria-label": "Comparison", data: { focus: `${place} operator` },
      onchange: (event) => this.edit(() => { node.operator = event.target.value; }) },
      ...OPERATORS.map((one) => element("option", { selected: one === node.operator }, one)));
    const value = element("input", { class: "value", value: node.value, inputmode: "decimal", "aria-label": "Threshold", autocomplete: "off",
      list: proposed.length ? listId : null, data: { focus: `${place} value` },
      oninput: (event) => this.type(() => { node.value = event.target.value.trim(); }) });
    const filter = element("details", { open: Boolean(node.filter) }, element("summary", { class: "note" }, "of some rows alone"),
      element("input", { value: node.filter, spellcheck: "false", "aria-label": "Rows that count", placeholder: "condition", data: { focus: `${place} filter` },
        oninput: (event) => this.type(() => { node.filter = event.target.value; }) }));
    return element("div", { class: "test" },
      element("div", { class: "row" }, fn, column, operator, value,
        proposed.length ? element("datalist", { id: listId }, ...proposed.map((one) => element("option", { value: one }))) : null,
        element("button", { type: "button", class: "quiet", "aria-label": "Remove the test", onclick: remove }, "✕")), filter);
  }
}
