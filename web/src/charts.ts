// Figures and tables of results, as the report draws them.

import { h } from "./dom";
import { onTheme, theme } from "./theme";
import type { Grid, Shown } from "./types";

type Drawing = InstanceType<typeof anabranchDrawing.Drawing>;

/// Figures of results; `only`: the ids of those that are wanted.
export function figures(shown: Shown, only?: (id: string) => boolean): HTMLElement {
  const { charts } = shown;
  const places = anabranchChart.places(charts.systems, charts.figures);
  const times = new anabranchDrawing.Times(charts.figures);
  const box = h("div", { className: "figures" });
  const drawings = new Map<Element, Drawing>();
  const draw = (element: Element) => {
    const drawing = drawings.get(element);
    if (drawing && Math.abs(drawing.chart.clientWidth - drawing.width) > 1) drawing.draw();
  };
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      draw(target);
      sizes.observe(target);
    }
  }, { rootMargin: "500px" });
  const sizes = new ResizeObserver((entries) => requestAnimationFrame(() => entries.forEach(({ target }) => draw(target))));
  shown.figures.forEach(({ id, title, notes }, n) => {
    if (only && !only(id)) return;
    const exports = ["svg", "png", "csv"].map((kind) => h("button", {
      type: "button", "aria-label": `${title} as ${kind.toUpperCase()}`, onclick: () => void drawings.get(element)?.save(kind),
    }, kind.toUpperCase()));
    const element = h("figure", { id: `figure-${id}` },
      h("h3", {}, title),
      h("div", { className: "legend", role: "group", "aria-label": "Series" }),
      h("div", { className: "chart", role: "img", "aria-label": `Figure: ${title}. Its numbers are in the CSV file below.` }),
      notes.length > 0 ? h("figcaption", {}, ...notes.map((note) => h("p", {}, note))) : null,
      h("p", { className: "exports" }, ...exports));
    box.append(element);
    drawings.set(element, new anabranchDrawing.Drawing(element, charts.figures[n], places, theme, times));
    near.observe(element);
  });
  onTheme(box, () => {
    for (const drawing of drawings.values()) {
      drawing.legend();
      if (drawing.view) drawing.draw();
    }
  });
  return box;
}

export function table({ caption, columns, rows, notes }: Grid): HTMLElement {
  const kind = (n: number) => (columns[n]?.right ? "number" : undefined);
  const box = h("div", { className: "grid" },
    h("h3", {}, caption),
    h("div", { className: "wide", tabindex: "0", role: "region", "aria-label": caption }, h("table", {},
      h("thead", {}, h("tr", {}, ...columns.map(({ head }, n) => h("th", { scope: "col", className: kind(n) }, head)))),
      h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((cell, n) => h("td", { className: kind(n) }, cell))))))),
    ...notes.map((note) => h("p", { className: "note" }, note)));
  anabranchTable(box);
  return box;
}

/// A text to copy.
export function copied(text: string, label: string): HTMLElement {
  const button = h("button", {
    type: "button", className: "copy", "aria-label": `Copy ${label}`,
    onclick: async () => {
      button.textContent = (await copy(text)) ? "Copied" : "Not copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    },
  }, "Copy");
  return h("div", { className: "code" }, h("pre", { tabindex: "0" }, text), button);
}

// The clipboard may be out of reach for files from disk; selecting and copying works there.
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", {}, text);
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/// Everything that a comparison or a run has, in the order of a report.
export function results(shown: Shown): HTMLElement {
  return h("div", {},
    shown.about ? h("p", { className: "about" }, shown.about) : null,
    ...shown.warnings.map((text) => h("p", { className: "warning" }, text)),
    figures(shown),
    ...shown.tables.map(table),
    facts(shown));
}

export function facts(shown: Shown): HTMLElement {
  return h("div", { className: "below" },
    h("h3", {}, "The same with the command"),
    shown.command ? copied(shown.command, "the command") : null,
    h("dl", { className: "facts" }, ...shown.facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
}
