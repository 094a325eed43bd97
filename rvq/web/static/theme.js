// Light, dark, or as the system says. Runs before the page is drawn, so that nothing flashes.
"use strict";
(() => {
  const NAMES = ["auto", "light", "dark"];
  const WORDS = { auto: "as the system", light: "light", dark: "dark" };
  const read = () => {
    try { return localStorage.getItem("rvq-theme"); } catch { return null; } // storage may be forbidden
  };
  const keep = (name) => {
    try { localStorage.setItem("rvq-theme", name); } catch { /* then it holds until the page is left */ }
  };
  let name = NAMES.includes(read()) ? read() : "auto";
  const apply = () => { document.documentElement.dataset.theme = name; };
  apply();
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (!button) return;
    const say = () => {
      button.textContent = name[0].toUpperCase() + name.slice(1);
      button.setAttribute("aria-label", `Colours: ${WORDS[name]}`);
    };
    say();
    button.addEventListener("click", () => {
      name = NAMES[(NAMES.indexOf(name) + 1) % NAMES.length];
      keep(name);
      apply();
      say();
    });
  });
})();
