// Elements, made in one line. Texts go in as text: a name in a scenario cannot become an element.

type Child = Node | string | null | undefined | false;
type Properties = Record<string, unknown>;

export function h<K extends keyof HTMLElementTagNameMap>(name: K, properties: Properties = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on") && typeof value === "function") element.addEventListener(key.slice(2), value as EventListener);
    else if (key in element && !key.includes("-") && key !== "role" && typeof value !== "string") Object.assign(element, { [key]: value });
    else element.setAttribute(key === "className" ? "class" : key, value === true ? "" : String(value));
  }
  element.append(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false));
  return element;
}

let last = 0;
/// An id that nothing else on the page has.
export const unique = (stem: string) => `${stem}-${++last}`;

/// Says a sentence to who listens to a screen reader.
export function announce(text: string): void {
  let place = document.getElementById("announcer");
  if (!place) {
    place = h("div", { id: "announcer", className: "unseen", role: "status", "aria-live": "polite" });
    document.body.append(place);
  }
  place.textContent = text;
}

export const number = (value: number, digits = 3) => (Number.isFinite(value) ? Number(value.toPrecision(digits)).toLocaleString("en") : "–");

/// 1536 -> "1.5 kB", decimal as in the reports.
export function bytes(value: number): string {
  for (const [size, unit] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]] as const) if (value >= size) return `${number(value / size)} ${unit}`;
  return `${Math.round(value)} B`;
}
