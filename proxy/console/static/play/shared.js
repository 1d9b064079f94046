// What the playground's pages share: numbers as people read them, and refusals in their place.
import { Problem, problemBox } from "../api.js";

export const API = `${document.querySelector("nav.parts").dataset.begin}/api`; // an owner's is elsewhere
export const percent = (share) => share === 0 ? "0 %" : share < 0.001 ? "under 0.1 %" : `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
export const number = (value) => Number(value).toLocaleString("en", { maximumFractionDigits: value < 10 ? 2 : value < 100 ? 1 : 0 });
export const epsilonOf = (exponent) => Number((10 ** (exponent / 10)).toPrecision(2));
export const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
export const timeOf = (tick, minutes) => `${String(Math.floor(tick * minutes / 60)).padStart(2, "0")}:${String(tick * minutes % 60).padStart(2, "0")}`;

export function tell(error) {
  const place = document.getElementById("trouble");
  if (!error) { place.replaceChildren(); return; }
  if (!(error instanceof Problem)) throw error;
  place.replaceChildren(problemBox(error.told));
}

// Runs work, and tells what it is refused with; returns null then.
export async function attempt(work) {
  try { const found = await work(); tell(null); return found; } catch (error) { if (error.name === "AbortError") return null; tell(error); return null; }
}

// Reads a form's choices from the address, and writes them back, so that a link leads to the same.
export function readLink(form) {
  for (const [name, value] of new URLSearchParams(location.search)) if (form.elements[name]) form.elements[name].value = value;
}
export function writeLink(form) {
  history.replaceState(null, "", `?${new URLSearchParams(new FormData(form))}`);
}
