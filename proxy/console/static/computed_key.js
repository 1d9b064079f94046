// Keys that a question computes: steps of a number, a part of a date, or any expression. A key is its SQL, read back here.
import { element } from "./api.js";

const PERIODS = ["year", "quarter", "month", "week", "day", "hour"].map((part) => [`date_trunc ${part}`, part]);
const PARTS = [["extract month", "month of the year"], ["extract isodow", "day of the week"], ["extract hour", "hour of the day"]];
const NICE = [1, 2, 5, 10]; // widths that people choose, times a power of ten
const TENTH = 10; // about so many steps lie between the bounds

const writeSteps = (column, width) => (column.kind === "integer" ? `${column.sql} / ${width} * ${width}` : `floor(${column.sql} / ${width}) * ${width}`);
const writePart = (column, part) => {
  const [call, unit] = part.split(" ");
  return call === "extract" ? `extract(${unit} from ${column.sql})` : `date_trunc('${unit}', ${column.sql})`;
};

const numbers = (table) => table.measures;
const dates = (table) => [...table.keys, ...table.others].filter((one) => one.kind === "date" || one.kind === "timestamp");

function widthOf({ kind, bounds: [low, high] }) {
  const about = Math.max((high - low) / TENTH, kind === "integer" ? 1 : 0.01);
  const power = 10 ** Math.floor(Math.log10(about));
  return String(Number(((NICE.find((one) => one * power >= about) ?? TENTH) * power).toPrecision(3)));
}

// What a computed key is, if it has a form here; else its text.
function readKey(sql, table) {
  const steps = /^(?:floor\((\S+) \/ ([\d.]+)\) \* \2|(\S+) \/ (\d+) \* \4)$/.exec(sql);
  const number = steps && numbers(table).find((one) => one.sql === (steps[1] ?? steps[3]));
  if (number) return { form: "steps", column: number, width: steps[2] ?? steps[4] };
  const part = /^(?:extract\((\w+) from (\S+)\)|date_trunc\('(\w+)', (\S+)\))$/i.exec(sql);
  const date = part && dates(table).find((one) => one.sql === (part[2] ?? part[4]));
  const named = part && (part[1] ? `extract ${part[1].toLowerCase()}` : `date_trunc ${part[3]}`);
  if (date && [...PERIODS, ...PARTS].some(([one]) => one === named)) return { form: "part", column: date, part: named };
  return { form: "text" };
}

// The keys that the builder can begin for a table, each with the words on its button.
export function newKeys(table) {
  const [number] = numbers(table), [date] = dates(table);
  return [
    number && ["+ steps of a number", writeSteps(number, widthOf(number))],
    date && ["+ part of a date", writePart(date, "extract isodow")],
    ["+ yes or no", number ? `${number.sql} > ${Number(number.bounds[0]) + 5 * Number(widthOf(number))}` : `${(table.others[0] ?? table.keys[0]).sql} IS NULL`],
  ].filter(Boolean);
}

// A computed key in fields; `set` takes its new SQL, `type` the same while somebody types.
export function drawKey(sql, table, place, { set, type, remove }) {
  const found = readKey(sql, table);
  const choose = (label, focus, options, chosen, use) => element("select", { class: "short", "aria-label": label, data: { focus: `${place} ${focus}` }, onchange: (event) => use(event.target.value) },
    ...options.map(([value, text]) => element("option", { value, selected: value === chosen }, text)));
  const columnOf = (columns, use) => choose("Column", "column", columns.map((one) => [one.name, one.name]), found.column.name, (name) => use(columns.find((one) => one.name === name)));
  if (found.form === "steps") {
    const width = element("input", { class: "value", value: found.width, inputmode: "decimal", autocomplete: "off", "aria-label": "Width of a step", data: { focus: `${place} width` },
      oninput: (event) => { if (Number(event.target.value) > 0) type(writeSteps(found.column, event.target.value.trim())); } });
    return element("div", { class: "row" }, columnOf(numbers(table), (one) => set(writeSteps(one, widthOf(one)))), "in steps of", width, remove);
  }
  if (found.form === "part") {
    const parts = [...PARTS, ...PERIODS].filter(([one]) => found.column.kind === "timestamp" || !one.endsWith("hour"));
    const part = choose("Part of the date", "part", parts, found.part, (one) => set(writePart(found.column, one)));
    return element("div", { class: "row" }, part, "of", columnOf(dates(table), (one) => set(writePart(one, found.part))), remove);
  }
  return element("div", { class: "row test" }, element("input", { class: "mono", value: sql, spellcheck: "false", autocomplete: "off", "aria-label": "Key as SQL", data: { focus: `${place} text` },
    oninput: (event) => type(event.target.value.trim()) }), remove);
}
