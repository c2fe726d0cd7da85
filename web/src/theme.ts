// Light or dark: as the system has it, until the reader chooses.

export type Theme = "light" | "dark";
const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();
let chosen = remembered();

// Storage may be forbidden for files from disk.
function remembered(): Theme | null {
  try {
    const value = localStorage.getItem("anabranch-theme");
    return value === "light" || value === "dark" ? value : null;
  } catch { return null; }
}

export const theme = (): Theme => chosen ?? (dark.matches ? "dark" : "light");

function paint(): void {
  document.documentElement.dataset.theme = theme();
  const button = document.getElementById("theme");
  if (button) button.textContent = theme() === "dark" ? "Light" : "Dark";
  for (const listener of listeners) listener();
}

export function begin(): void {
  document.getElementById("theme")?.addEventListener("click", () => {
    chosen = theme() === "dark" ? "light" : "dark";
    try { localStorage.setItem("anabranch-theme", chosen); } catch { /* It is forgotten, then. */ }
    paint();
  });
  dark.addEventListener("change", () => { if (chosen === null) paint(); });
  paint();
}

/// Calls `listener` when colours change, for as long as `element` is in the page.
export function onTheme(element: HTMLElement, listener: () => void): void {
  const own = () => (element.isConnected ? listener() : void listeners.delete(own));
  listeners.add(own);
}

/// A colour of the style sheet.
export const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/// The colour of a path, as figures have it for the series of that place.
const COLOURS = {
  light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1b1f24", "#b5a300"],
  dark: ["#4aa3df", "#f07b2e", "#1fbf92", "#e095c1", "#f0b030", "#8fd0f7", "#f2f4f6", "#f0e442"],
};
export const ofPath = (n: number) => COLOURS[theme()][n % 8] ?? "#888";
