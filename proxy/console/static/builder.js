// The builder: a question as a tree of tests, with its columns, its ranking and what it looks up, and the SQL that it
// writes. The other way round, from SQL to a tree, is the server's parser; what has no form here stays a text in its place.
import { element } from "./api.js";
import { comparedWith, drawAggregate, drawMore, newAggregate, newValue, proposedFor, RANKED_BY } from "./aggregate_picker.js";
import { drawKey, newKeys } from "./computed_key.js";
import { ownColumns, publicOf, tableOf, writeSql } from "./question_sql.js";

const OPERATORS = [">", ">=", "<", "<=", "=", "<>"];

const newTest = (table) => {
  const aggregate = newAggregate(table);
  return { kind: "test", ...aggregate, operator: ">", value: newValue(aggregate, table) };
};
const asGroup = (formula) => (formula === null ? { kind: "and", children: [] } : ["and", "or"].includes(formula.kind) ? formula : { kind: "and", children: [formula] });
const button = (text, focus, onclick) => element("button", { type: "button", class: "quiet", data: { focus }, onclick }, text);
const remover = (label, onclick) => element("button", { type: "button", class: "quiet", "aria-label": label, onclick }, "✕");

export class Builder {
  constructor(holder, catalog, changed) {
    this.holder = holder;
    this.catalog = catalog;
    this.changed = changed;
  }

  get table() { return tableOf(this.model, this.catalog); }
  get sql() { return writeSql(this.model, this.catalog); }
  get tools() { return { model: this.model, catalog: this.catalog, edit: (work) => this.edit(work), type: (work) => this.type(work) }; }

  start(name) {
    const table = this.catalog.tables.find((one) => one.name === name) ?? this.catalog.tables.find((one) => one.keys.length) ?? this.catalog.tables[0];
    this.show({
      table: table.name, alias: "", joins: [], keys: table.keys.slice(0, 1).map((key) => ({ of: "", name: key.name })), where: "",
      having: { kind: "and", children: [newTest(table)] }, columns: [], ranking: null,
    });
  }

  show(model) {
    const columns = model.columns.map((column) => (column.kind === "formula" ? { ...column, formula: asGroup(column.formula) }
      : column.kind === "words" ? { ...column, bands: column.bands.map((band) => ({ ...band, formula: asGroup(band.formula) })) } : column));
    this.model = { ...model, having: asGroup(model.having), columns };
    this.draw();
  }

  edit(work) { work(); this.draw(); this.changed(this.sql); }
  type(work) { work(); this.changed(this.sql); }

  draw() {
    const focused = document.activeElement?.dataset?.focus;
    const { table, model } = this;
    const tables = element("select", { data: { focus: "table" }, onchange: (event) => { this.start(event.target.value); this.changed(this.sql); } },
      ...this.catalog.tables.map((one) => element("option", { value: one.name, selected: one.name === table.name }, one.name)));
    const where = element("label", {}, "Of the rows where (optional)",
      element("input", { value: model.where, spellcheck: "false", placeholder: table.others[0] ? `${table.others[0].sql} = …` : "", data: { focus: "where" },
        oninput: (event) => this.type(() => { model.where = event.target.value; }) }));
    const groups = element("div", {}, element("p", { class: "tree-title" }, model.having.children.length || !(model.columns.length || model.ranking) ? "Groups in which" : "All groups, or those in which"),
      this.drawNode(model.having, null, "0"));
    this.holder.replaceChildren(element("div", { class: "stack" }, element("label", {}, "Table", tables), this.drawKeys(), where, groups, this.drawMore()));
    if (focused) this.holder.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
  }

  drawKeys() {
    const { table, model } = this;
    const chip = (key, text, focus) => element("label", { class: "inline chip" },
      element("input", { type: "checkbox", checked: model.keys.some((one) => one.of === key.of && one.name === key.name), data: { focus },
        onchange: (event) => this.edit(() => {
          model.keys = model.keys.filter((one) => one.of !== key.of || one.name !== key.name);
          if (event.target.checked) model.keys.push(key);
          const order = (one) => (one.of || one.sql ? 1000 : table.keys.findIndex((each) => each.name === one.name));
          model.keys.sort((one, other) => order(one) - order(other));
        }) }), text);
    const own = table.keys.map((key) => chip({ of: "", name: key.name }, `${key.name} (${key.values.toLocaleString("en")})`, `key ${key.name}`));
    const joined = model.joins.flatMap((join) => (publicOf(join, this.catalog)?.columns ?? [])
      .filter((column) => column.name !== join.key).map((column) => chip({ of: join.alias, name: column.name }, `${join.alias}.${column.name}`, `key ${join.alias}.${column.name}`)));
    const computed = model.keys.filter((key) => key.sql).map((key, number) => drawKey(key.sql, table, `computed ${number}`, {
      set: (sql) => this.edit(() => { key.sql = sql; key.name = sql; }),
      type: (sql) => this.type(() => { key.sql = sql; key.name = sql; }),
      remove: remover("Remove the key", () => this.edit(() => { model.keys = model.keys.filter((one) => one !== key); })),
    }));
    const add = newKeys(table).map(([text, sql]) => button(text, `add ${text}`, () => this.edit(() => model.keys.push({ of: "", name: sql, sql }))));
    return element("fieldset", { class: "plain" }, element("legend", {}, "One answer for each"), element("div", { class: "row" }, ...own, ...joined),
      ...computed, element("div", { class: "row" }, ...add),
      model.keys.length ? null : element("p", { class: "bad" }, "Choose at least one."));
  }

  // What a first question does without: columns beside the keys, the first few groups, public tables.
  drawMore() {
    const { model } = this;
    const used = model.columns.length || model.ranking || model.joins.length;
    if (used) this.opened = true;
    return element("details", { open: Boolean(this.opened), ontoggle: (event) => { this.opened = event.target.open; } },
      element("summary", { data: { focus: "more" } }, "Show more than a list: columns, the first few, public tables"),
      element("div", { class: "stack" }, this.drawColumns(), this.drawRanking(), this.drawJoins()));
  }

  drawColumns() {
    const { model, table } = this;
    const add = (column) => this.edit(() => model.columns.push(column));
    const group = () => ({ kind: "and", children: [newTest(table)] });
    const measure = table.measures.find((one) => Object.keys(one.bands).length);
    const bucket = () => {
      const made = measure ? { ...newAggregate(table), function: Object.keys(measure.bands)[0], column: measure.name } : { ...newAggregate(table) };
      const cuts = measure?.bands[made.function] ?? (made.function === "count" ? table.bands.rows : table.bands.units) ?? ["100", "1000"];
      return { kind: "bucket", name: this.freshName("band"), ...made, cuts: [...cuts] };
    };
    return element("fieldset", { class: "plain" }, element("legend", {}, "Columns that say something of each group (a scorecard)"),
      ...model.columns.map((column, number) => this.drawColumn(column, () => this.edit(() => model.columns.splice(number, 1)), `c${number}`)),
      element("div", { class: "row" },
        button("+ yes or no", "add formula", () => add({ kind: "formula", name: this.freshName("yes"), formula: group() })),
        button("+ words", "add words", () => add({ kind: "words", name: this.freshName("level"), bands: [{ word: "high", formula: group() }], otherwise: "low" })),
        button("+ numbered bands", "add bucket", () => add(bucket()))));
  }

  freshName(stem) {
    const taken = new Set([...ownColumns(this.table).map((one) => one.name), ...this.model.columns.map((one) => one.name)]);
    let name = stem;
    for (let number = 2; taken.has(name); number += 1) name = `${stem}_${number}`;
    return name;
  }

  drawColumn(column, remove, place) {
    const name = element("label", { class: "inline" }, "Called", element("input", { class: "value", value: column.name, spellcheck: "false", autocomplete: "off", data: { focus: `${place} name` },
      oninput: (event) => this.type(() => { column.name = event.target.value.trim(); }) }));
    const head = (...more) => element("div", { class: "row" }, name, ...more, remover("Remove the column", remove));
    if (column.kind === "bucket") {
      const cuts = element("label", {}, "starts again at each of", element("input", { value: column.cuts.join(", "), inputmode: "decimal", autocomplete: "off", data: { focus: `${place} cuts` },
        oninput: (event) => this.type(() => { column.cuts = event.target.value.split(",").map((one) => one.trim()).filter(Boolean); }) }));
      const changed = (proposed) => { if (proposed.length) column.cuts = [...proposed]; };
      return element("div", { class: "branch" }, head(), element("div", { class: "row" }, "the band of", ...drawAggregate(this.tools, column, place, { label: "What has bands", changed }).filter(Boolean)), cuts);
    }
    if (column.kind === "words") {
      const word = (value, focus, label, set) => element("label", { class: "inline" }, label, element("input", { class: "value", value, autocomplete: "off", data: { focus },
        oninput: (event) => this.type(() => set(event.target.value)) }));
      return element("div", { class: "branch" }, head(),
        ...column.bands.map((band, number) => element("div", { class: "branch" },
          element("div", { class: "row" }, word(band.word, `${place}.${number} word`, "says", (text) => { band.word = text; }), number ? "else where" : "where",
            column.bands.length > 1 ? remover("Remove the word", () => this.edit(() => column.bands.splice(number, 1))) : null),
          this.drawNode(band.formula, null, `${place}.${number}`))),
        element("div", { class: "row" },
          button("+ word", `${place} word`, () => this.edit(() => column.bands.push({ word: "usual", formula: { kind: "and", children: [newTest(this.table)] } }))),
          column.otherwise === null ? null : word(column.otherwise, `${place} otherwise`, "and in all others", (text) => { column.otherwise = text; })));
    }
    return element("div", { class: "branch" }, head("is yes where"), this.drawNode(column.formula, null, place));
  }

  drawRanking() {
    const { model, table } = this;
    const ranking = model.ranking;
    const chosen = element("label", { class: "inline meant" }, element("input", { type: "checkbox", checked: Boolean(ranking), data: { focus: "ranking" },
      onchange: (event) => this.edit(() => { model.ranking = event.target.checked ? { ...newAggregate(table), descending: true, limit: "5" } : null; }) }), "Only the first few groups, in their order (a ranking)");
    if (!ranking) return chosen;
    const order = element("select", { class: "short", "aria-label": "Which come first", data: { focus: "ranking order" }, onchange: (event) => this.edit(() => { ranking.descending = event.target.value === "largest"; }) },
      element("option", { value: "largest", selected: ranking.descending }, "the largest"), element("option", { value: "smallest", selected: !ranking.descending }, "the smallest"));
    const limit = element("label", { class: "inline" }, "the first", element("input", { class: "value", value: ranking.limit, inputmode: "numeric", autocomplete: "off", placeholder: "all", data: { focus: "ranking limit" },
      oninput: (event) => this.type(() => { ranking.limit = event.target.value.trim(); }) }));
    return element("div", {}, chosen, element("div", { class: "branch" },
      element("div", { class: "row" }, limit, "with", order, ...drawAggregate(this.tools, ranking, "ranking", { only: RANKED_BY, label: "What is ranked by" }).filter(Boolean)),
      drawMore(this.tools, ranking, "ranking")));
  }

  drawJoins() {
    const { model, catalog, table } = this;
    const free = catalog.public.filter((one) => one.by.length && !model.joins.some((join) => join.table === one.name));
    if (!free.length && !model.joins.length) return null;
    const kindOf = (one, name) => one.columns.find((column) => column.name === name)?.kind;
    const fitting = (one, key) => ownColumns(table).filter((column) => column.kind === kindOf(one, key));
    const begin = (one) => {
      const { key, base } = table.lookups[one.name] ?? { key: one.by[0], base: ownColumns(table)[0].name };
      return { table: one.name, alias: one.name, sql: one.sql, outer: false, using: false, key, base: { of: "", name: base } };
    };
    const forget = (alias) => {
      model.keys = model.keys.filter((key) => key.of !== alias);
      model.joins = model.joins.filter((join) => join.alias !== alias && join.base.of !== alias);
    };
    const drawn = model.joins.map((join, number) => {
      const told = publicOf(join, catalog);
      const bases = fitting(told ?? { columns: [] }, join.key).map((column) => ({ of: "", name: column.name }));
      if (!bases.some((base) => base.of === join.base.of && base.name === join.base.name)) bases.push(join.base);
      const base = element("select", { class: "short", "aria-label": "Column of the table", data: { focus: `join ${number} base` }, onchange: (event) => this.edit(() => { join.base = bases[Number(event.target.value)]; join.using = false; }) },
        ...bases.map((one, at) => element("option", { value: String(at), selected: one === join.base || (one.of === join.base.of && one.name === join.base.name) }, one.of ? `${one.of}.${one.name}` : one.name)));
      const keys = [...new Set([...(told?.by ?? []), join.key])];
      const key = element("select", { class: "short", "aria-label": "Column of the public table", data: { focus: `join ${number} key` }, onchange: (event) => this.edit(() => { join.key = event.target.value; join.using = false; }) },
        ...keys.map((one) => element("option", { value: one, selected: one === join.key }, one)));
      const outer = element("label", { class: "inline meant" }, element("input", { type: "checkbox", checked: join.outer, data: { focus: `join ${number} outer` }, onchange: (event) => this.edit(() => { join.outer = event.target.checked; }) }), "keep rows that find nothing");
      return element("div", { class: "branch" }, element("div", { class: "row" }, element("strong", {}, join.table), "where", base, "is its", key, remover("Look nothing up there", () => this.edit(() => forget(join.alias)))), outer);
    });
    return element("fieldset", { class: "plain" }, element("legend", {}, "Looked up in public tables"), ...drawn,
      element("div", { class: "row" }, ...free.map((one) => button(`+ ${one.name}`, `add join ${one.name}`, () => this.edit(() => model.joins.push(begin(one)))))));
  }

  drawNode(node, remove, place) {
    if (node.kind === "test") return this.drawTest(node, remove, place);
    const gone = remove ? remover("Remove", remove) : null;
    if (node.kind === "text") {
      return element("div", { class: "row test" }, element("input", { class: "mono", value: node.text, spellcheck: "false", autocomplete: "off", "aria-label": "Test as SQL", data: { focus: `${place} text` },
        oninput: (event) => this.type(() => { node.text = event.target.value.trim(); }) }), gone);
    }
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
        button("+ test", `${place} add`, () => this.edit(() => children.push(newTest(this.table)))),
        button(`+ ${other.toUpperCase()} group`, `${place} group`, () => this.edit(() => children.push({ kind: other, children: [newTest(this.table), newTest(this.table)] })))));
  }

  compareWith(node, against) {
    if (against) Object.assign(node, { against, value: { total: "0.1", average: "1", before: "1.2" }[against] });
    else {
      delete node.against;
      if (!node.over) node.value = newValue(node, this.table);
    }
  }

  drawTest(node, remove, place) {
    const others = comparedWith(node, this, place.startsWith("c"));
    if (!others.some(([against]) => against === (node.against ?? ""))) this.compareWith(node, "");
    const proposed = node.against ? [] : proposedFor(node, this.table);
    const listId = `bands ${place}`.replace(/\W/g, "-");
    const fields = drawAggregate(this.tools, node, place, { changed: (cuts) => { if (cuts.length && !node.over && !node.against) node.value = cuts[0]; } });
    const operator = element("select", { class: "tiny", "aria-label": "Comparison", data: { focus: `${place} operator` },
      onchange: (event) => this.edit(() => { node.operator = event.target.value; }) },
      ...OPERATORS.map((one) => element("option", { selected: one === node.operator }, one)));
    const against = others.length === 1 ? null : element("select", { class: "short", "aria-label": "Compared with", data: { focus: `${place} against` },
      onchange: (event) => this.edit(() => this.compareWith(node, event.target.value)) },
      ...others.map(([name, text]) => element("option", { value: name, selected: name === (node.against ?? "") }, text)));
    const value = element("input", { class: "value", value: node.value, inputmode: "decimal", "aria-label": node.against ? "How many times" : "Threshold", autocomplete: "off",
      list: proposed.length ? listId : null, data: { focus: `${place} value` },
      oninput: (event) => this.type(() => { node.value = event.target.value.trim(); }) });
    return element("div", { class: "test" },
      element("div", { class: "row" }, ...fields.filter(Boolean), operator, value, against,
        proposed.length ? element("datalist", { id: listId }, ...proposed.map((one) => element("option", { value: one }))) : null,
        remover("Remove the test", remove)), drawMore(this.tools, node, place, { shares: true }));
  }
}
