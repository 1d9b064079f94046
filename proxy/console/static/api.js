// What pages ask the server: JSON in, JSON out, refusals as Problem.

export class Problem extends Error {
  constructor(told, status, waitS) {
    super(told.title ?? "the server cannot be reached");
    this.told = told;
    this.status = status;
    this.waitS = waitS;
  }
}

export async function call(path, { body, key, signal, method } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  let response;
  try {
    response = await fetch(path, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers, signal, body: body === undefined ? undefined : JSON.stringify(body), credentials: "same-origin",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ code: "", title: "The server cannot be reached.", hint: "Try again in a moment." }, 0, 1);
  }
  if (response.status === 401) {
    const login = location.pathname.startsWith("/console/owner") ? "/console/owner/login" : "/console/login";
    location.assign(`${login}?next=${encodeURIComponent(location.pathname + location.search)}`);
  }
  const told = await response.json().catch(() => ({}));
  if (!response.ok) throw new Problem(told, response.status, Number(response.headers.get("Retry-After")) || 0);
  return told;
}

export const data = (id) => JSON.parse(document.getElementById(id).textContent);

// A text without what would turn or hide a part of it: control, format and direction characters are written out.
export const visible = (text) => String(text).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (found) => `\\u${found.codePointAt(0).toString(16).padStart(4, "0")}`);

// An element with properties and children; strings become text, never markup.
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name === "class") made.className = value;
    else if (name === "data") Object.assign(made.dataset, value);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && typeof value !== "string") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// Put children into a holder in the place of what is there; what is nothing is left out.
export const fill = (holder, ...children) => holder.replaceChildren(...children.filter((child) => child !== null && child !== undefined));

export function problemBox(told) {
  return element("div", { class: "problem", role: "alert" },
    element("p", {}, element("strong", {}, told.code ?? ""), ` ${told.title ?? "refused"}`),
    told.detail ? element("p", {}, told.detail) : null,
    told.hint ? element("p", { class: "hint" }, told.hint) : null);
}

// Call once things have been still for so many milliseconds.
export function debounce(work, ms) {
  let timer;
  return (...given) => { clearTimeout(timer); timer = setTimeout(() => work(...given), ms); };
}
