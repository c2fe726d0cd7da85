// What the page does. Figures are drawn when they come near the window, or all of them before printing.
"use strict";

(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = remembered();
  /// On paper everything is light.
  let printing = false;
  const theme = () => (printing ? "light" : chosen ?? (dark.matches ? "dark" : "light"));

  // Storage may be forbidden for files from disk.
  function remembered() {
    try {
      const value = localStorage.getItem("anabranch-theme");
      return value === "light" || value === "dark" ? value : null;
    } catch { return null; }
  }
  function remember(value) {
    try { localStorage.setItem("anabranch-theme", value); } catch { /* It is forgotten, then. */ }
  }

  const sections = new Map();
  function sectionOf(id) {
    if (!sections.has(id)) {
      const data = JSON.parse(document.getElementById(`${id}-data`).textContent);
      sections.set(id, { figures: data.figures, places: anabranchChart.places(data.systems, data.figures) });
    }
    return sections.get(id);
  }

  class Drawing {
    constructor(element) {
      const { figures, places } = sectionOf(element.dataset.section);
      this.element = element;
      this.figure = figures[Number(element.dataset.figure)];
      this.places = places;
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
      const look = anabranchChart.look(this.places.get(series.name), series.origin, theme());
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
        const options = { places: this.places, shown: this.shown, theme: theme(), width, legend: false, ...parts };
        this.view = anabranchChart.view(anabranchChart.specification(this.figure, options), renderer, this.chart);
        this.view.tooltip((_, event, item, value) => tip(event, value ? item?.datum : null, this));
        this.view.run();
        const drawn = this.chart.firstElementChild;
        const over = Number(drawn?.getAttribute("width") || drawn?.clientWidth || 0) / (renderer === "canvas" ? devicePixelRatio : 1) - width;
        if (!(over > 0)) break;
        parts.panelWidth = Math.max(80, parts.panelWidth - Math.ceil(over / parts.columns));
      }
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

  const drawings = new Map();
  function drawingOf(element) {
    if (!drawings.has(element)) drawings.set(element, new Drawing(element));
    return drawings.get(element);
  }
  const figures = [...document.querySelectorAll("figure[data-section]")];
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      drawingOf(target).draw();
      sizes.observe(target);
    }
  }, { rootMargin: "500px" });
  let pending = 0;
  const sizes = new ResizeObserver(() => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(() => {
      if (printing) return;
      for (const drawing of drawings.values()) {
        if (drawing.view && Math.abs(drawing.chart.clientWidth - drawing.width) > 1) drawing.draw();
      }
    });
  });

  function paint() {
    root.dataset.theme = theme();
    button.textContent = theme() === "dark" ? "Light" : "Dark";
    for (const drawing of drawings.values()) {
      drawing.legend();
      if (drawing.view) drawing.draw();
    }
  }
  const button = document.getElementById("theme");
  button.hidden = false;
  button.addEventListener("click", () => {
    chosen = theme() === "dark" ? "light" : "dark";
    remember(chosen);
    paint();
  });
  dark.addEventListener("change", () => { if (chosen === null) paint(); });

  // Everything is drawn, light, as wide as the paper, and nothing is folded away. Drawing is synchronous: the browser does not
  // wait for promises here.
  let folded = [];
  addEventListener("beforeprint", () => {
    printing = true;
    root.dataset.theme = "light";
    folded = [...document.querySelectorAll("details:not([open])")].filter((it) => !it.classList.contains("licences"));
    folded.forEach((it) => { it.open = true; });
    root.classList.add("printing");
    for (const figure of figures) {
      const drawing = drawingOf(figure);
      drawing.legend();
      drawing.draw();
    }
  });
  addEventListener("afterprint", () => {
    printing = false;
    root.classList.remove("printing");
    folded.forEach((it) => { it.open = false; });
    paint();
  });
  const print = document.getElementById("print");
  print.hidden = false;
  print.addEventListener("click", () => window.print());

  document.addEventListener("click", async (event) => {
    const pressed = event.target instanceof Element ? event.target.closest("button") : null;
    if (pressed?.dataset.export) {
      await drawingOf(pressed.closest("figure")).save(pressed.dataset.export);
    } else if (pressed?.classList.contains("copy")) {
      const text = pressed.parentElement.querySelector("pre").textContent;
      pressed.textContent = (await copy(text)) ? "Copied" : "Not copied";
      setTimeout(() => { pressed.textContent = "Copy"; }, 1500);
    }
  });

  // The clipboard may be out of reach for files from disk; selecting and copying works there.
  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }

  root.dataset.theme = theme();
  paint();
  figures.forEach((figure) => near.observe(figure));
})();
