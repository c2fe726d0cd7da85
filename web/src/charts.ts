// Figures and tables of results, as the report draws them.

import { h } from "./dom";
import { onTheme, theme } from "./theme";
import type { Grid, Shown } from "./types";

type Drawing = InstanceType<typeof anabranchDrawing.Drawing>;

/// Figures of results; `only`: the ids of those that are wanted.
export function figures(shown: Shown, only?: (id: string) => boolean): HTMLElement {
  return new Figures(shown, only).element;
}

/// Figures in the page. They can be renewed while runs are made: what is drawn stays in its place.
export class Figures {
  readonly element = h("div", { className: "figures" });
  private readonly drawings = new Map<Element, Drawing>();
  private readonly places: Map<string, number>;
  private readonly times: InstanceType<typeof anabranchDrawing.Times>;
  private readonly near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      this.near.unobserve(target);
      this.draw(target);
      this.sizes.observe(target);
    }
  }, { rootMargin: "500px" });
  private readonly sizes = new ResizeObserver((entries) => requestAnimationFrame(() => entries.forEach(({ target }) => this.draw(target))));

  constructor(shown: Shown, only?: (id: string) => boolean) {
    const { charts } = shown;
    this.places = anabranchChart.places(charts.systems, charts.figures);
    this.times = new anabranchDrawing.Times(charts.figures);
    shown.figures.forEach((figure, n) => {
      if (!only || only(figure.id)) this.element.append(this.made(figure, charts.figures[n]));
    });
    onTheme(this.element, () => {
      for (const drawing of this.drawings.values()) {
        drawing.legend();
        if (drawing.view) drawing.draw();
      }
    });
  }

  /// Takes the same figures with more points, and figures that were not there before.
  renew(shown: Shown): void {
    this.times.renew(shown.charts.figures);
    shown.figures.forEach((figure, n) => {
      const known = [...this.element.children].find(({ id }) => id === `figure-${figure.id}`);
      const element = known ?? this.made(figure, shown.charts.figures[n]);
      if (this.element.children[n] !== element) this.element.insertBefore(element, this.element.children[n] ?? null);
      const drawing = this.drawings.get(element);
      if (!known || !drawing) return;
      known.querySelector("figcaption")?.replaceWith(caption(figure.notes));
      drawing.figure = shown.charts.figures[n];
      // What it looks like hangs on the number of points.
      if (!known.querySelector(".legend")?.contains(document.activeElement)) drawing.legend();
      // What is out of sight waits until it comes near.
      const { top, bottom } = element.getBoundingClientRect();
      if (drawing.view && bottom > -500 && top < innerHeight + 500) drawing.draw();
      else {
        drawing.width = 0;
        this.sizes.unobserve(element);
        this.near.observe(element);
      }
    });
  }

  private draw(element: Element): void {
    const drawing = this.drawings.get(element);
    if (drawing && Math.abs(drawing.chart.clientWidth - drawing.width) > 1) drawing.draw();
  }

  private made({ id, title, notes }: Shown["figures"][number], figure: unknown): HTMLElement {
    const exports = ["svg", "png", "csv"].map((kind) => h("button", {
      type: "button", "aria-label": `${title} as ${kind.toUpperCase()}`, onclick: () => void this.drawings.get(element)?.save(kind),
    }, kind.toUpperCase()));
    const element = h("figure", { id: `figure-${id}` },
      h("h3", {}, title),
      h("div", { className: "legend", role: "group", "aria-label": "Series" }),
      h("div", { className: "chart", role: "img", "aria-label": `Figure: ${title}. Its numbers are in the CSV file below.` }),
      caption(notes),
      h("p", { className: "exports" }, ...exports));
    this.drawings.set(element, new anabranchDrawing.Drawing(element, figure, this.places, theme, this.times));
    this.near.observe(element);
    return element;
  }
}

const caption = (notes: string[]) => h("figcaption", { hidden: notes.length === 0 }, ...notes.map((note) => h("p", {}, note)));

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
