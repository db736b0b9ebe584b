// The theme, light or dark. This runs before the page is drawn, so that a dark page never flashes white.
"use strict";

(() => {
  const KEY = "psmt-live-theme";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  // A page in the frame of another site may not be allowed to store anything.
  const stored = () => { try { return localStorage.getItem(KEY); } catch { return null; } };
  const store = (theme) => { try { localStorage.setItem(KEY, theme); } catch { /* it lasts until the page is closed */ } };

  function apply(theme) {
    document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) button.setAttribute("aria-label", `Theme: ${theme}. Switch to ${theme === "dark" ? "light" : "dark"}`);
    window.dispatchEvent(new Event("themechange"));
  }

  const system = () => (dark.matches ? "dark" : "light");
  apply(stored() || system());
  dark.addEventListener("change", () => { if (!stored()) apply(system()); });
  document.addEventListener("DOMContentLoaded", () => {
    apply(document.documentElement.dataset.theme);
    document.getElementById("theme").addEventListener("click", () => {
      const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      store(theme);
      apply(theme);
    });
  });
})();
