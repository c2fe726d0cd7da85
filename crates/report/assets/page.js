// What the page does. All figures are drawn while the page loads, those in the window first, and anew before printing.
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
      sections.set(id, { figures: data.figures, places: anabranchChart.places(data.systems, data.figures), times: new anabranchDrawing.Times(data.figures) });
    }
    return sections.get(id);
  }

  const drawings = new Map();
  function drawingOf(element) {
    if (!drawings.has(element)) {
      const { figures, places, times } = sectionOf(element.dataset.section);
      const figure = figures[Number(element.dataset.figure)];
      drawings.set(element, new anabranchDrawing.Drawing(element, figure, places, theme, times));
    }
    return drawings.get(element);
  }
  const figures = [...document.querySelectorAll("figure[data-section]")];
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

  /// Draws all figures, the one nearest to the window first, with room for the reader's input after every few. Until the last is
  /// drawn the page counts as loading, so that pictures and prints of loaded pages are whole: a frame without content, whose
  /// document is open, keeps it so.
  function drawAll() {
    const waiting = new Set(figures);
    if (waiting.size === 0) return;
    const frame = Object.assign(document.createElement("iframe"), { hidden: true });
    document.body.append(frame);
    frame.contentDocument.open();
    const away = (figure) => {
      const { top, bottom } = figure.getBoundingClientRect();
      return Math.max(0, top - innerHeight, -bottom);
    };
    // Timers of pages in the background wait for a second each; messages do not.
    const turns = new MessageChannel();
    turns.port1.onmessage = () => {
      const until = performance.now() + 40;
      while (waiting.size > 0 && performance.now() < until) {
        const next = [...waiting].reduce((one, other) => (away(other) < away(one) ? other : one));
        waiting.delete(next);
        try {
          if (!printing) drawingOf(next).draw();
          sizes.observe(next);
        } catch (problem) {
          // The others can still be drawn.
          console.error(problem);
        }
      }
      if (waiting.size > 0) return turns.port2.postMessage(null);
      turns.port1.close();
      frame.contentDocument.close();
      frame.remove();
    };
    turns.port2.postMessage(null);
  }

  document.querySelectorAll(".grid").forEach(anabranchTable);
  root.dataset.theme = theme();
  paint();
  drawAll();
})();
