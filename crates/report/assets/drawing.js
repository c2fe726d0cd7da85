// A figure in a page: legend that can be pressed, drawing, words beside the pointer, exports. The page has an element
// `tip`.
"use strict";

const anabranchDrawing = (() => {
  class Drawing {
    /// `theme`: a function that says `light` or `dark`. `times`: the part of the time that this figure and others show.
    constructor(element, figure, places, theme, times = new Times([figure])) {
      this.element = element;
      this.figure = figure;
      this.places = places;
      this.theme = theme;
      // Where a figure says which are enough to begin with, the others wait in the legend.
      const first = new Set(this.figure.first);
      this.shown = new Set([...this.figure.series.keys()].filter((k) => first.size === 0 || first.has(this.figure.series[k].name)));
      this.chart = element.querySelector(".chart");
      this.width = 0;
      this.times = anabranchChart.timed(figure) ? times : null;
      /// True if panels share their axes.
      this.same = false;
      this.legend();
      this.tools();
      if (this.times) this.follow();
    }

    /// Buttons for the part of the time, and for the axes of panels.
    tools() {
      const button = (text, label, run) => {
        const made = Object.assign(document.createElement("button"), { type: "button", textContent: text, title: label });
        made.setAttribute("aria-label", label);
        made.addEventListener("click", () => run(made));
        return made;
      };
      const buttons = [];
      if (this.times) {
        for (const [text, label, run] of [
          ["+", "closer", () => this.times.zoom(0.5)], ["−", "farther", () => this.times.zoom(2)],
          ["◀", "earlier", () => this.times.shift(-0.5)], ["▶", "later", () => this.times.shift(0.5)],
          ["whole", "the whole time", () => this.times.show(this.times.whole)],
        ]) buttons.push(button(text, label, run));
      } else if (this.figure.panels.length > 1) {
        const toggle = button("same axes", "all panels with the same axes", () => {
          this.same = !this.same;
          toggle.setAttribute("aria-pressed", String(this.same));
          this.draw();
        });
        toggle.setAttribute("aria-pressed", String(this.same));
        buttons.push(toggle);
      }
      if (buttons.length === 0) return;
      const line = Object.assign(document.createElement("div"), { className: "tools view" });
      line.setAttribute("role", "group");
      line.setAttribute("aria-label", this.times ? "Part of the time, in all figures" : "Axes");
      line.append(...buttons);
      this.chart.before(line);
    }

    /// Shows the part of the time that is chosen in any of the figures; keys and the pointer choose one here.
    follow() {
      const { chart, times } = this;
      times.drawings.add(this);
      chart.tabIndex = 0;
      chart.setAttribute("role", "group");
      chart.setAttribute("aria-label", `${chart.getAttribute("aria-label") ?? ""} Arrow keys move, plus and minus zoom, 0 shows all.`.trim());
      chart.addEventListener("keydown", (event) => {
        const moves = {
          ArrowLeft: () => times.shift(-0.2), ArrowRight: () => times.shift(0.2), "+": () => times.zoom(0.5), "-": () => times.zoom(2),
          0: () => times.show(times.whole),
        };
        if (!moves[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        moves[event.key]();
      });
      chart.addEventListener("dblclick", () => times.show(times.whole));
      chart.addEventListener("pointerdown", (event) => {
        // A finger scrolls the page.
        const plot = event.button !== 0 || event.pointerType === "touch" || !this.view ? undefined : this.plot(event);
        if (!plot) return;
        event.preventDefault();
        chart.focus({ preventScroll: true });
        this.drag(event, plot);
      });
    }

    /// Draws up a part of the time in a panel; with Shift moves the one that is shown. All panels follow.
    drag({ clientX: begin, shiftKey: moves, pointerId }, plot) {
      const { chart, times } = this;
      const [from, to] = times.shown;
      const time = (x) => from + (Math.min(1, Math.max(0, (x - plot.left) / plot.width)) * (to - from));
      const part = Object.assign(document.createElement("div"), { className: "part", hidden: true });
      part.style.top = `${plot.top - chart.getBoundingClientRect().top}px`;
      part.style.height = `${plot.height}px`;
      chart.append(part);
      chart.setPointerCapture(pointerId);
      const inside = (x) => Math.min(plot.left + plot.width, Math.max(plot.left, x)) - chart.getBoundingClientRect().left;
      const moved = ({ clientX }) => {
        if (moves) return times.show([from, to].map((end) => end - ((clientX - begin) / plot.width) * (to - from)));
        part.hidden = Math.abs(clientX - begin) < 4;
        part.style.left = `${inside(Math.min(begin, clientX))}px`;
        part.style.width = `${inside(Math.max(begin, clientX)) - inside(Math.min(begin, clientX))}px`;
      };
      const ended = ({ clientX, type }) => {
        chart.removeEventListener("pointermove", moved);
        for (const name of ["pointerup", "pointercancel"]) chart.removeEventListener(name, ended);
        part.remove();
        if (type === "pointerup" && !moves && Math.abs(clientX - begin) >= 4) times.show([time(begin), time(clientX)].sort((a, b) => a - b));
      };
      chart.addEventListener("pointermove", moved);
      for (const name of ["pointerup", "pointercancel"]) chart.addEventListener(name, ended);
    }

    /// Place of the plot within the axes in the window: of the only panel, or of the one that the pointer is in.
    plot({ clientX, clientY }) {
      const drawn = this.chart.firstElementChild.getBoundingClientRect();
      const [x, y] = this.view.origin(), padding = this.view.padding();
      const [left, top] = [drawn.left + x + padding.left, drawn.top + y + padding.top];
      const cells = this.view.scenegraph().root.items[0].items.filter((mark) => mark.role === "scope").flatMap((mark) => mark.items);
      const plots = cells.map((cell) => ({ left: left + cell.x, top: top + cell.y, width: cell.width, height: cell.height }));
      const within = (it) => clientX >= it.left && clientX <= it.left + it.width && clientY >= it.top && clientY <= it.top + it.height;
      return plots.length > 1 ? plots.find(within) : plots[0];
    }

    /// Shows another part of the time.
    turn() {
      if (!this.view) return;
      const [low, high] = anabranchChart.heights(this.figure, this.shown, this.times.shown);
      const [from, to] = this.times.shown;
      for (const [name, value] of Object.entries({ timeFrom: from, timeTo: to, leastSeen: low, mostSeen: high })) this.view.signal(name, value);
      this.view.run();
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
      if (mark === "span") {
        svg.append(make("rect", { x: -7, y: -6, width: 14, height: 12, fill: look.colour }));
      } else {
        if (mark !== "point" && mark !== "bar") svg.append(make("line", { x1: -17, x2: 17, stroke: look.colour, "stroke-width": 2, "stroke-dasharray": look.dash.join(" ") }));
        if (mark === "point" || mark === "bar" || !anabranchChart.plain(series, mark)) {
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
        const part = this.times && { time: this.times.shown, heights: anabranchChart.heights(this.figure, this.shown, this.times.shown) };
        const options = { places: this.places, shown: this.shown, theme: this.theme(), width, legend: false, part, same: this.same, ...parts };
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

    /// For a paper: light, 640 wide, with the legend inside, and what is shown.
    exported() {
      const part = this.times && { time: this.times.shown, heights: anabranchChart.heights(this.figure, this.shown, this.times.shown) };
      const options = { places: this.places, shown: this.shown, theme: "light", part, same: this.same };
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

  /// The part of the time that figures of a section show, all the same.
  class Times {
    constructor(figures) {
      this.whole = anabranchChart.course(figures);
      this.shown = this.whole;
      this.drawings = new Set();
      this.pending = 0;
    }

    /// Takes figures with more points: who sees the whole time sees it on.
    renew(figures) {
      const all = this.shown.every((end, n) => end === this.whole[n]);
      this.whole = anabranchChart.course(figures);
      if (all) this.shown = this.whole;
    }

    zoom(factor) {
      const [from, to] = this.shown, middle = (from + to) / 2;
      this.show([from, to].map((end) => middle + (end - middle) * factor));
    }

    shift(by) {
      const [from, to] = this.shown, step = (to - from) * by;
      this.show([from + step, to + step]);
    }

    /// No more than there is, and no less than a millionth of it.
    show([from, to]) {
      const [first, last] = this.whole;
      const length = Math.min(last - first, Math.max(to - from, (last - first) * 1e-6));
      const begin = Math.min(Math.max(from, first), last - length);
      this.shown = [begin, begin + length];
      cancelAnimationFrame(this.pending);
      this.pending = requestAnimationFrame(() => this.drawings.forEach((drawing) => drawing.turn()));
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

  return { Drawing, Times };
})();
