// Buttons that copy the text of an element, and say so.
const said = document.getElementById("said");

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    said.textContent = "Copied.";
  } catch {
    said.textContent = "The browser does not allow copying: mark the text and copy it.";
  }
}

for (const button of document.querySelectorAll("button[data-copies]")) {
  button.addEventListener("click", () => copy(document.getElementById(button.dataset.copies).textContent));
}
