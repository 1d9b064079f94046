// The SQL of a question that is drawn: what the builder writes. The server's parser reads it back.

// A name as SQL has it: as it is, or in quotes.
export const quote = (name) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);
const literal = (text) => `'${text.replaceAll("'", "''")}'`;

export const unique = (columns) => [...new Map(columns.map((one) => [`${one.of ?? ""}|${one.name}`, one])).values()];
export const tableOf = (model, catalog) => catalog.tables.find((one) => one.name === model.table) ?? catalog.tables[0];
export const publicOf = (join, catalog) => catalog.public.find((one) => one.name === join.table);

// All columns of the question's own table, each once.
export const ownColumns = (table) => unique([...table.unit_columns, ...table.keys, ...table.measures, ...table.others]);

// The columns of the public tables that are joined, each with the alias it is `of`.
export const joinedColumns = (model, catalog) => model.joins.flatMap((join) =>
  (publicOf(join, catalog)?.columns ?? []).map((column) => ({ ...column, of: join.alias })));

// The key along which groups follow one another: the last of numbers or times. Undefined without one.
const ORDERED = ["integer", "numeric", "double", "date", "timestamp"];
export const calendarOf = (model, catalog) => model.keys.findLast((key) => !key.of && !key.sql
  && ORDERED.includes(tableOf(model, catalog).keys.find((one) => one.name === key.name)?.kind));

class Writer {
  constructor(model, catalog) {
    this.model = model;
    this.catalog = catalog;
    this.table = tableOf(model, catalog);
    this.own = ownColumns(this.table);
    this.qualified = model.joins.length > 0;
  }

  name({ of, name, sql: computed }) {
    if (computed) return computed;
    const join = this.model.joins.find((one) => one.alias === of);
    if (join) return `${join.sql}.${publicOf(join, this.catalog)?.columns.find((one) => one.name === name)?.sql ?? quote(name)}`;
    const sql = this.own.find((one) => one.name === name)?.sql ?? quote(name);
    return this.qualified ? `${this.model.alias || this.table.sql}.${sql}` : sql;
  }

  aggregate(node) {
    const named = node.expression !== null ? node.expression : node.column === null ? "*" : this.name({ of: node.of, name: node.column });
    const over = node.function === "count distinct" ? `DISTINCT ${named}` : named;
    const call = `${node.function === "count distinct" ? "count" : node.function}(${over || "*"})`;
    return `${call}${node.filter.trim() ? ` FILTER (WHERE ${node.filter.trim()})` : ""}`;
  }

  // What a test compares with: other groups, by a window in a column, and in HAVING by a subquery over the same rows.
  others(node, windows) {
    const { model } = this;
    const size = this.aggregate(node);
    const keys = model.keys.map((key) => this.name(key)).join(", ");
    if (node.against === "before") {
      const calendar = calendarOf(model, this.catalog);
      const rest = model.keys.filter((key) => key !== calendar).map((key) => this.name(key)).join(", ");
      return `lag(${size}) OVER (${rest && `PARTITION BY ${rest} `}ORDER BY ${this.name(calendar)})`;
    }
    if (windows) return `${node.against === "average" ? "avg" : "sum"}(${size}) OVER ()`;
    const rows = `${this.from()}${model.where.trim() ? ` WHERE ${model.where.trim()}` : ""}`;
    return node.against === "average" ? `(SELECT avg(n) FROM (SELECT ${keys}, ${size} AS n ${rows} GROUP BY ${keys}) AS q)` : `(SELECT ${size} ${rows})`;
  }

  test(node, windows) {
    if (node.against) return `${this.aggregate(node)} ${node.operator} ${node.value === "" ? "1" : node.value} * ${this.others(node, windows)}`;
    const share = node.over ? `${node.factor ? `${node.factor} * ` : ""}${this.aggregate(node)} / ${this.aggregate(node.over)}` : this.aggregate(node);
    return `${share} ${node.operator} ${node.value === "" ? "0" : node.value}`;
  }

  formula(node, { inside = "", windows = false } = {}) {
    switch (node.kind) {
      case "test": return this.test(node, windows);
      case "text": return inside ? `(${node.text})` : node.text;
      case "not": { const child = this.formula(node.child, { windows }); return child && `NOT (${child})`; }
      default: {
        const parts = node.children.map((child) => this.formula(child, { inside: node.kind, windows })).filter(Boolean);
        const joined = parts.join(` ${node.kind.toUpperCase()} `);
        return inside && inside !== node.kind && parts.length > 1 ? `(${joined})` : joined;
      }
    }
  }

  shown(column) {
    const called = (text) => text && (column.name ? `${text} AS ${quote(column.name)}` : text);
    switch (column.kind) {
      case "bucket": return called(`width_bucket(${this.aggregate(column)}, ARRAY[${column.cuts.join(", ")}])`);
      case "words": {
        const bands = column.bands.map((one) => [this.formula(one.formula, { windows: true }), one.word]).filter(([formula]) => formula);
        if (!bands.length) return "";
        const last = column.otherwise === null ? "" : ` ELSE ${literal(column.otherwise)}`;
        return called(`CASE${bands.map(([formula, word]) => ` WHEN ${formula} THEN ${literal(word)}`).join("")}${last} END`);
      }
      default: return called(this.formula(column.formula, { windows: true }));
    }
  }

  join(one) {
    const at = publicOf(one, this.catalog);
    const sql = at?.sql ?? quote(one.table);
    const how = one.using ? `USING (${quote(one.key)})` : `ON ${this.name(one.base)} = ${this.name({ of: one.alias, name: one.key })}`;
    return `${one.outer ? "LEFT JOIN" : "JOIN"} ${sql}${one.alias === one.table ? "" : ` AS ${one.sql}`} ${how}`;
  }

  from() { return `FROM ${this.table.sql}${this.model.alias ? ` AS ${this.model.alias}` : ""}`; }

  ranking(node) {
    return `ORDER BY ${this.aggregate(node)}${node.descending ? " DESC" : ""}${node.limit ? ` LIMIT ${node.limit}` : ""}`;
  }

  question() {
    const { model } = this;
    const keys = model.keys.map((key) => this.name(key));
    const shown = model.columns.map((column) => this.shown(column)).filter(Boolean);
    const having = model.having ? this.formula(model.having) : "";
    return [
      shown.length ? `SELECT ${keys.join(", ")},\n       ${shown.join(",\n       ")}` : `SELECT ${keys.join(", ")}`,
      this.from(),
      ...model.joins.map((one) => this.join(one)),
      model.where.trim() ? `WHERE ${model.where.trim()}` : "",
      `GROUP BY ${keys.join(", ")}`,
      having ? `HAVING ${having}` : "",
      model.ranking ? this.ranking(model.ranking) : "",
    ].filter(Boolean).join("\n");
  }
}

export const writeSql = (model, catalog) => (model.keys.length ? new Writer(model, catalog).question() : "");
