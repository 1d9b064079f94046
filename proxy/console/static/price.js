// What EXPLAIN says, as people read it: the price, where each epsilon goes, what is promised, what would be cheaper.
import { element, fill } from "./api.js";

export const epsilon = (value) => (Math.ceil(value * 1000 - 1e-9) / 1000).toLocaleString("en", { maximumFractionDigits: 3 });
const percent = (rate) => (rate === null ? "no bound" : `${(rate * 100).toLocaleString("en", { maximumSignificantDigits: 3 })} %`);

function bar(share, tone = "") {
  const inner = element("span", { class: `fill ${tone}` });
  inner.style.width = `${Math.max(1, Math.min(100, share * 100))}%`;
  return element("span", { class: "bar", "aria-hidden": "true" }, inner);
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function verdict(told) {
  if (told.stored) return ["good", "Answered before: asking again spends nothing of the shared budget."];
  if (told.waits_for_approval) return ["warn", capital(told.waits_for_approval.message)]; // or it was declined, and why
  if (told.refused) return ["bad", "It would be refused: it costs more than it may."];
  return ["good", "It fits what is left."];
}

// Settings with which a question would fit, as EXPLAIN words them, and a button that takes them.
function fitting(text, use) {
  const changes = [...text.matchAll(/keyhole\.(\w+) = '?([^' ]+)'?/g)].map((match) => ({ setting: match[1], value: match[2] }));
  const known = changes.length && changes.every((one) => one.setting in NAMES);
  return element("li", { class: "row spread" }, element("code", {}, text.replaceAll("keyhole.", "")),
    known ? element("button", { type: "button", "aria-label": `Use ${text}`, onclick: () => use(...changes) }, "use") : null);
}

// What a refusal proposes in fields of a request, with a button that takes it.
export function drawProposals(hint, use) {
  const found = [...(hint ?? "").matchAll(/"(\w+)": ("(?:[^"\\]|\\.)*"|[\d.]+)/g)].filter((match) => match[1] in NAMES)
    .map((match) => ({ setting: match[1], value: JSON.parse(match[2]) }));
  return found.map((one) => element("button", { type: "button", onclick: () => use(one) }, `Use ${NAMES[one.setting]} ${shown(one)}`));
}

export function drawPrice(holder, told, use) {
  const [tone, sentence] = verdict(told);
  const cost = told.cost;
  const figures = element("div", { class: "figures" },
    element("div", {}, element("div", { class: "figure" }, `${epsilon(told.worst_case_epsilon)} ε`), element("small", {}, "at most, a group")),
    cost && cost.unit_at_most !== null && cost.unit_at_most !== undefined
      ? element("div", {}, element("div", { class: "figure" }, `${epsilon(cost.unit_at_most)} ε`), element("small", {}, `at most, each ${told.privacy_unit}`)) : null,
    element("div", {}, element("div", { class: "figure" }, told.keys.toLocaleString("en")), element("small", {}, `groups (${told.grouped_by.join(", ") || "the whole table"})`)));
  const left = (cost?.left ?? []).map((one) => {
    const spent = one.of === "unit" ? cost.unit_at_most ?? 0 : told.worst_case_epsilon;
    return element("li", {}, bar(one.cap ? one.epsilon / one.cap : 0, spent > one.epsilon ? "bad" : "good"),
      element("span", {}, `${one.of}: ${epsilon(one.epsilon)} of ${epsilon(one.cap)} ε left`));
  });
  const parts = told.functionals.map((one) => element("li", {}, bar(one.share_of_worst_case, "accent"),
    element("span", {}, `${one.literals.join(", ")}  ${one.name}: ${epsilon(one.epsilon)} ε`,
      element("small", {}, ` missed ${percent(one.fnr)}, wrong ${percent(one.fpr)}`))));
  const letters = told.literals.map((one) => element("li", {}, element("strong", {}, one.letter), ` ${one.text}`,
    element("small", {}, ` may err between ${one.may_err_between.map((each) => each.toLocaleString("en")).join(" and ")}${one.may_err_in ? ` ${one.may_err_in}` : ""}`)));
  fill(
    holder,
    figures,
    element("p", { class: `verdict ${tone}` }, sentence),
    told.refused && told.would_fit?.length ? element("div", {}, element("p", {}, "It would fit with"), element("ul", { class: "bars" }, ...told.would_fit.map((one) => fitting(one, use)))) : null,
    told.hint && !told.would_fit?.length ? element("p", { class: "hint" }, told.hint) : null,
    left.length ? element("ul", { class: "bars", "aria-label": "What is left" }, ...left) : null,
    element("h3", {}, "Where each epsilon goes"),
    parts.length ? element("ul", { class: "bars" }, ...parts) : element("p", {}, "Nowhere: the question alone decides it."),
    letters.length ? element("div", {}, element("p", {}, element("strong", {}, "Formula "), element("code", {}, told.letters)), element("ul", { class: "letters" }, ...letters)) : null,
    element("p", { class: "guarantee" }, told.guarantee.sentence),
    ...(told.warnings ?? []).map((warning) => element("p", { class: "warn" }, warning)),
    element("details", {}, element("summary", {}, "More of EXPLAIN"),
      element("ul", {},
        element("li", {}, `Mechanism: ${told.mechanism}`),
        ...Object.entries(told.compared ?? {}).filter(([, price]) => price !== null).map(([name, price]) => element("li", {}, `${name === "naive" ? "an equal split" : "ProBE"} would reserve ${epsilon(price)} ε`)),
        ...(told.bounding ?? []).map((note) => element("li", {}, note)),
        told.question_id ? element("li", {}, `Question ${told.question_id}`) : null),
      element("p", {}, "The SQL that the source gets:"), element("pre", {}, told.sql)));
}

export function drawCheaper(holder, levers, now, use) {
  if (!levers.length) {
    holder.replaceChildren(element("p", { class: "note" }, "No single setting makes it cheaper."));
    return;
  }
  holder.replaceChildren(element("ul", { class: "bars" }, ...levers.map((one) => element("li", {},
    bar(now ? one.epsilon / now : 0, "accent"),
    element("span", { class: "row spread" }, `${NAMES[one.setting]} ${shown(one)}: ${epsilon(one.epsilon)} ε`,
      element("button", { type: "button", class: "quiet", "aria-label": `Use ${NAMES[one.setting]} ${shown(one)}`, onclick: () => use(one) }, "use"))))));
}

const shown = (one) => (one.setting === "fnr" || one.setting === "fpr" ? percent(one.value) : String(one.value));
export const NAMES = { tolerance: "tolerance", fnr: "missed at most", fpr: "wrong at most", min_rows: "groups of at least" };
