// A figure in a page: legend that can be pressed, drawing, words beside the pointer, exports. The page has an element
// `tip`.
"use strict";

const anabranchDrawing = (() => {
  class Drawing {
    /// `theme`: a function that says `light` or `dark`.
    constructor(element, figure, places, theme) {
      this.element = element;
      this.figure = figure;
      this.places = places;
      this.theme = theme;
      this.shown = new Set(this.figure.series.keys());
      this.chart = element.querySelector(".chart");
      this.width = 0;
      this.legend();
    }

    legend() {
      const box = this.element.querySelector(".legend");
      box.replaceChildren(...this.figure.series.map((series, k) => {
        const button = document.createElement("button");
        button.type = "button";
        button.setAttribute("aria-pressed", String(this.shown.has(k)));
        button.title = "Click: on or off. Shift and click: this one alone, or all again.";
        button.append(this.swatch(series), series.name);
        button.addEventListener("click", (event) => {
          if (event.shiftKey) {
            const alone = this.shown.size === 1 && this.shown.has(k);
            this.shown = new Set(alone ? this.figure.series.keys() : [k]);
          } else if (!this.shown.delete(k)) {
            this.shown.add(k);
          }
          [...box.children].forEach((other, n) => other.setAttribute("aria-pressed", String(this.shown.has(n))));
          this.draw();
        });
        return button;
      }));
    }

    swatch(series) {
      const look = anabranchChart.look(this.places.get(series.name), series.origin, this.theme());
      const space = "http://www.w3.org/2000/svg";
      const make = (name, attributes) => {
        const made = document.createElementNS(space, name);
        for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
        return made;
      };
      const svg = make("svg", { width: 34, height: 14, viewBox: "-17 -7 34 14", "aria-hidden": "true" });
      const mark = this.figure.mark;
      if (mark === "bar" || mark === "span") {
        svg.append(make("rect", { x: -7, y: -6, width: 14, height: 12, fill: look.colour }));
      } else {
        if (mark !== "point") svg.append(make("line", { x1: -17, x2: 17, stroke: look.colour, "stroke-width": 2, "stroke-dasharray": look.dash.join(" ") }));
        if (mark === "point" || !anabranchChart.plain(series)) {
          const fill = look.hollow ? "none" : look.colour;
          svg.append(make("path", { d: shapePath(look.shape), fill, stroke: look.colour, "stroke-width": 1.2 }));
        }
      }
      return svg;
    }

    draw() {
      const width = Math.floor(this.chart.clientWidth);
      if (width === 0) return;
      this.width = width;
      const parts = anabranchChart.layout(this.figure, width);
      const points = this.figure.series.reduce((n, series) => n + series.length, 0);
      // So many elements of SVG would make the page slow.
      const renderer = points > 3000 ? "canvas" : "svg";
      // Labels take what they take: if the drawing has become wider than its place, panels give way.
      for (let attempt = 0; attempt < 3; attempt++) {
        this.view?.finalize();
        this.chart.replaceChildren();
        const options = { places: this.places, shown: this.shown, theme: this.theme(), width, legend: false, ...parts };
        this.view = anabranchChart.view(anabranchChart.specification(this.figure, options), renderer, this.chart);
        this.view.tooltip((_, event, item, value) => tip(event, value ? item?.datum : null, this));
        this.view.run();
        const drawn = this.chart.firstElementChild;
        const over = Number(drawn?.getAttribute("width") || drawn?.clientWidth || 0) / (renderer === "canvas" ? devicePixelRatio : 1) - width;
        if (!(over > 0)) break;
        parts.panelWidth = Math.max(80, parts.panelWidth - Math.ceil(over / parts.columns));
      }
      // What it says stands in the label of its place.
      for (const child of this.chart.children) child.setAttribute("aria-hidden", "true");
      this.chart.classList.add("drawn");
    }

    /// For a paper: light, 640 wide, with the legend inside.
    exported() {
      const options = { places: this.places, shown: this.shown, theme: "light" };
      return anabranchChart.view(anabranchChart.alone(this.figure, options), "none", null);
    }

    async save(kind) {
      const name = `${this.figure.file}.${kind}`;
      if (kind === "csv") return save(name, new Blob([anabranchChart.csv(this.figure)], { type: "text/csv;charset=utf-8" }));
      const view = this.exported();
      try {
        if (kind === "svg") return save(name, new Blob([await view.toSVG()], { type: "image/svg+xml" }));
        const canvas = await view.toCanvas(3);
        const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
        save(name, blob);
      } finally {
        view.finalize();
      }
    }
  }

  function shapePath(shape) {
    const r = 4;
    switch (shape) {
      case "circle": return `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`;
      case "square": return `M${-r},${-r}h${2 * r}v${2 * r}h${-2 * r}Z`;
      case "diamond": return `M0,${-r - 1}L${r + 1},0L0,${r + 1}L${-r - 1},0Z`;
      case "cross": return `M${-r},-1.4h2.6v-2.6h2.8v2.6h2.6v2.8h-2.6v2.6h-2.8v-2.6h-2.6Z`;
      case "triangle-down": return `M${-r},${-r}h${2 * r}L0,${r}Z`;
      case "triangle-right": return `M${-r},${-r}L${r},0L${-r},${r}Z`;
      case "triangle-left": return `M${r},${-r}L${-r},0L${r},${r}Z`;
      default: return `M${-r},${r}h${2 * r}L0,${-r}Z`;
    }
  }

  function save(name, blob) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  // Texts go in as text: names in a study cannot become elements.
  const tipBox = document.getElementById("tip");
  function tip(event, row, drawing) {
    tipBox.hidden = !row;
    if (!row) return;
    const name = document.createElement("b");
    name.textContent = row.s;
    const list = document.createElement("dl");
    for (const [what, value] of anabranchChart.about(drawing.figure, row)) {
      const [term, said] = [document.createElement("dt"), document.createElement("dd")];
      term.textContent = what;
      said.textContent = value;
      list.append(term, said);
    }
    tipBox.replaceChildren(name, list);
    const { width, height } = tipBox.getBoundingClientRect();
    const beside = event.clientX + 14 + width > innerWidth - 8 ? event.clientX - 14 - width : event.clientX + 14;
    tipBox.style.left = `${Math.max(8, Math.min(beside, innerWidth - width - 8))}px`;
    tipBox.style.top = `${Math.max(8, Math.min(event.clientY + 14, innerHeight - height - 8))}px`;
  }
  addEventListener("scroll", () => { tipBox.hidden = true; }, { passive: true });

  return { Drawing };
})();
