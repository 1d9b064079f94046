// Light or dark: the browser's wish until somebody chooses. Loaded before the page is drawn, so that nothing flashes.
(() => {
  const root = document.documentElement;
  const read = () => { try { return localStorage.getItem("keyhole-theme"); } catch { return null; } };
  const chosen = read();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme")?.addEventListener("click", () => {
      const now = root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
      root.dataset.theme = now === "dark" ? "light" : "dark";
      try { localStorage.setItem("keyhole-theme", root.dataset.theme); } catch { /* private windows keep nothing */ }
      document.dispatchEvent(new CustomEvent("keyhole-theme"));
    });
  });
})();
