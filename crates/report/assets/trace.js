// A transfer packet by packet: data over time, limits as bands, bytes in flight, on one axis of time. uPlot has axes and
// pointer; strokes and bands are drawn here, since there may be tens of thousands.
"use strict";

(() => {
  const COLOURS = {
    handshake: "#7d8590", request: "#a8b3bf", join: "#56b4e9", "slow-start": "#e6b800", "congestion-window": "#d55e00", "peer-window": "#a55bd6",
    "head-of-line": "#d6336c", scheduler: "#2f6fde", pacing: "#8a6d1d", timeout: "#c1121f", "send-buffer": "#7048a8", "application-sends": "#74a82a",
    "application-reads": "#0f8a6a", "path-full": "#2a9d63", "path-down": "#5c3b2e", "in-flight": "#8ecae6", unused: "#00000000",
  };
  const KINDS = [["new", "first sending"], ["retransmitted", "sent again"], ["reinjected", "repeat on another path"], ["lost", "did not arrive"]];
  const at = (column, i) => (Array.isArray(column) ? column[i] : column) ?? 0;
  // Colours are asked for at each mark, and are others only once the page is dark.
  const colours = new Map();
  const style = (name) => {
    if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
    return colours.get(name);
  };
  const ofPath = (path) => style(`--series-${(path % 8) + 1}`);
  const tip = document.getElementById("tip");

  /// A column of differences as numbers.
  function summed(column, length, scale = 1) {
    const all = new Float64Array(length);
    for (let i = 0, sum = 0; i < length; i++) {
      sum += at(column, i);
      all[i] = sum * scale;
    }
    return all;
  }
  function plain(column, length, scale = 1) {
    const all = new Float64Array(length);
    for (let i = 0; i < length; i++) all[i] = at(column, i) * scale;
    return all;
  }

  /// The first place of a sorted column with at least this value.
  function first(column, value) {
    let [low, high] = [0, column.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (column[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
  }

  const digits = (value, n) => value.toLocaleString("en", { maximumSignificantDigits: n, useGrouping: false });
  const whole = (value) => value.toLocaleString("en");
  function bytes(value) {
    const size = Math.abs(value);
    for (const [scale, unit] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) if (size >= scale) return `${digits(value / scale, 4)} ${unit}`;
    return `${digits(value, 4)} B`;
  }
  function seconds(value) {
    if (Math.abs(value) >= 1 || value === 0) return `${value.toFixed(4)} s`;
    return `${digits(value * 1e3, 5)} ms`;
  }
  /// "3", or "3 to 7".
  const range = (from, to) => (to > from ? `${whole(from)} to ${whole(to)}` : whole(from));

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key in made) made[key] = value; else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  /// The columns of a trace as arrays, times in seconds.
  function read(data) {
    const { sent, acked, edge } = data;
    const n = sent.length;
    const strokes = {
      n, t: summed(sent.t, n, 1e-6), d: plain(sent.d, n, 1e-6), from: summed(sent.f, n), length: plain(sent.l, n), subflow: plain(sent.s, n), copy: plain(sent.k, n),
      way: plain(sent.a, n), count: plain(sent.c, n), left: summed(sent.n, n), leftMore: plain(sent.p, n), came: summed(sent.m, n), cameMore: plain(sent.q, n),
    };
    strokes.longest = strokes.d.reduce((a, b) => Math.max(a, b), 0);
    const steps = (it) => ({ t: summed(it.t, it.length, 1e-6), y: summed(it.y, it.length) });
    const flight = data.flight.map((it) => ({ t: summed(it.t, it.length, 1e-6), y: plain(it.y, it.length), w: plain(it.w, it.length) }));
    const rows = data.rows.map((it) => ({ name: it.name, path: it.path, t: summed(it.t, it.length, 1e-6), e: plain(it.e, it.length, 1e-6), k: plain(it.k, it.length) }));
    return { ...data, strokes, acked: steps(acked), edge: steps(edge), flight, rows };
  }

  class Trace {
    constructor(figure) {
      this.figure = figure;
      this.data = read(JSON.parse(document.getElementById(figure.dataset.trace).textContent));
      this.place = figure.querySelector(".plots");
      this.chosenBox = figure.querySelector(".chosen");
      this.hidden = new Set();
      this.chosen = [];
      const { strokes, rows, acked } = this.data;
      const ends = [...rows.map((row) => (row.t.length ? row.t.at(-1) + row.e.at(-1) : 0)), acked.t.at(-1) ?? 0, strokes.n ? strokes.t[strokes.n - 1] + strokes.d[strokes.n - 1] : 0];
      const begins = [...rows.filter((row) => row.t.length).map((row) => row.t[0]), strokes.n ? strokes.t[0] : 0];
      this.begin = Math.min(...begins);
      this.end = Math.max(...ends, this.begin + 1e-6);
      const margin = (this.end - this.begin) * 0.01;
      this.all = [this.begin - margin, this.end + margin];
      this.view = { x: this.all, y: null };
      this.legend();
      this.tools();
      this.keys();
      this.build();
      new ResizeObserver(() => this.resize()).observe(this.place);
      new MutationObserver(() => { colours.clear(); this.legend(); this.build(); }).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    }

    kindOf(i) {
      const { copy, way } = this.data.strokes;
      return way[i] === -1 ? 3 : copy[i];
    }
    pathOf(i) { return this.data.subflows[this.data.strokes.subflow[i]].path; }
    shows(i) { return !this.hidden.has(`path ${this.pathOf(i)}`) && !this.hidden.has(KINDS[this.kindOf(i)][0]); }

    legend() {
      const box = this.figure.querySelector(".legend");
      const kinds = new Set();
      for (let i = 0; i < this.data.strokes.n; i++) kinds.add(this.kindOf(i));
      const used = new Set(this.data.subflows.map((it) => it.path));
      const entries = this.data.paths.map((name, path) => [`path ${path}`, name, (ctx) => stroke(ctx, ofPath(path))]).filter((_, path) => used.has(path));
      for (const kind of [1, 2, 3]) if (kinds.has(kind)) entries.push([KINDS[kind][0], `${KINDS[kind][0]}${kind === 3 ? "" : `: ${KINDS[kind][1]}`}`.replace("lost", "lost: did not arrive"), (ctx) => mark(ctx, kind, 9, 8, style("--text"))]);
      if (this.data.acked.t.length) entries.push(["acked", "DATA_ACK, as the sender saw it", (ctx) => line(ctx, style("--ack"), [])]);
      if (this.data.edge.t.length) entries.push(["edge", "end of the receiver's window", (ctx) => line(ctx, style("--edge"), [4, 3])]);
      box.replaceChildren(...entries.map(([key, name, draw]) => {
        const canvas = element("canvas", { width: 18 * devicePixelRatio, height: 16 * devicePixelRatio, style: "width: 18px; height: 16px", ariaHidden: "true" });
        const ctx = canvas.getContext("2d");
        ctx.scale(devicePixelRatio, devicePixelRatio);
        draw(ctx);
        const button = element("button", { type: "button", title: "Click: on or off." }, canvas, name);
        button.setAttribute("aria-pressed", String(!this.hidden.has(key)));
        button.addEventListener("click", () => {
          if (!this.hidden.delete(key)) this.hidden.add(key);
          button.setAttribute("aria-pressed", String(!this.hidden.has(key)));
          this.move(this.view);
        });
        return button;
      }));
      const limits = this.figure.querySelector(".limits");
      const { times } = this.data;
      const bands = new Set(this.data.rows.flatMap((row) => [...row.k]));
      times.forEach((time, k) => { if (time > 0) bands.add(k); });
      const all = times.reduce((a, b) => a + b, 0);
      limits.replaceChildren(...this.data.limits.flatMap((limit, k) => {
        if (!bands.has(k)) return [];
        const share = times[k] > 0 ? ` ${digits((100 * times[k]) / all, 2)} %` : "";
        const key = element("span", { className: "key" });
        key.style.background = COLOURS[limit.name] ?? style("--quiet");
        return [element("span", { title: limit.meaning }, key, limit.name, share)];
      }));
    }

    tools() {
      const part = (by) => () => { const [a, b] = this.view.x; const step = (b - a) * by; this.move({ x: [a + step, b + step], y: null }); };
      const about = (factor) => () => this.zoom(factor);
      const buttons = [["+", "closer", about(0.5)], ["−", "farther", about(2)], ["◀", "earlier", part(-0.5)], ["▶", "later", part(0.5)], ["whole", "the whole time", () => this.move({ x: this.all, y: null })]];
      this.figure.querySelector(".tools").replaceChildren(...buttons.map(([text, label, run]) => {
        const button = element("button", { type: "button", title: label }, text);
        button.setAttribute("aria-label", label);
        button.addEventListener("click", run);
        return button;
      }));
    }

    keys() {
      this.place.addEventListener("keydown", (event) => {
        const [a, b] = this.view.x;
        const step = (b - a) * 0.2;
        const moves = {
          ArrowLeft: () => this.move({ x: [a - step, b - step], y: null }), ArrowRight: () => this.move({ x: [a + step, b + step], y: null }),
          "+": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.move({ x: this.all, y: null }), Escape: () => this.choose([]),
        };
        if (!moves[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        moves[event.key]();
      });
    }

    /// `about`: the time that stays where it is; the middle unless given.
    zoom(factor, about = (this.view.x[0] + this.view.x[1]) / 2) {
      const [a, b] = this.view.x;
      this.move({ x: [about - (about - a) * factor, about + (b - about) * factor], y: null });
    }

    move({ x: [from, to], y }) {
      const [least, most] = this.all;
      const length = Math.max(2e-6, Math.min(to - from, most - least));
      const begin = Math.min(Math.max(from, least), most - length);
      this.view = { x: [begin, begin + length], y };
      const ranges = [y ?? this.heights(), [0, this.data.rows.length], this.flights()];
      this.plots.forEach((plot, n) => {
        const [min, max] = ranges[plot.rank];
        plot.batch(() => {
          plot.setScale("x", { min: this.view.x[0], max: this.view.x[1] });
          plot.setScale("y", { min, max });
        });
      });
    }

    /// Strokes whose time overlaps, as a range of places.
    visible(from, to) {
      const { t, longest } = this.data.strokes;
      return [first(t, from - longest), first(t, to + 1e-12)];
    }

    /// The data that is seen now.
    heights() {
      const { strokes, acked, edge } = this.data;
      const [from, to] = this.view.x;
      let [low, high] = [Infinity, -Infinity];
      const [begin, end] = this.visible(from, to);
      for (let i = begin; i < end; i++) {
        if (!this.shows(i)) continue;
        low = Math.min(low, strokes.from[i]);
        high = Math.max(high, strokes.from[i] + strokes.length[i]);
      }
      for (const [key, steps] of [["acked", acked], ["edge", edge]]) {
        if (this.hidden.has(key) || !steps.t.length) continue;
        for (let i = Math.max(0, first(steps.t, from) - 1); i < steps.t.length && steps.t[i] <= to; i++) {
          low = Math.min(low, steps.y[i]);
          high = Math.max(high, steps.y[i]);
        }
      }
      if (low > high) return [0, Math.max(1, strokes.n ? strokes.from[strokes.n - 1] : 1)];
      const margin = Math.max(1, (high - low) * 0.03);
      return [low - margin, high + margin];
    }

    flights() {
      const [from, to] = this.view.x;
      let high = 1;
      this.data.flight.forEach((steps, subflow) => {
        if (this.hidden.has(`path ${this.data.subflows[subflow].path}`)) return;
        for (let i = Math.max(0, first(steps.t, from) - 1); i < steps.t.length && steps.t[i] <= to; i++) high = Math.max(high, steps.y[i], steps.w[i]);
      });
      return [0, high * 1.05];
    }

    build() {
      (this.plots ?? []).forEach((plot) => plot.destroy());
      this.place.replaceChildren();
      this.width = this.place.clientWidth;
      const small = this.width < 560;
      const { rows, flight } = this.data;
      const drawn = [[0, "Data over time", small ? 300 : 380, (plot) => this.drawData(plot)]];
      if (rows.length) drawn.push([1, "Limits", 34 + 22 * rows.length, (plot) => this.drawRows(plot)]);
      if (flight.some((it) => it.t.length)) drawn.push([2, "Bytes in flight, and congestion windows (dotted)", small ? 150 : 180, (plot) => this.drawFlight(plot)]);
      this.plots = drawn.map(([rank, title, height, draw]) => this.plot(rank, title, height, draw));
      this.move(this.view);
    }

    plot(rank, title, height, draw) {
      const box = element("div", { className: "plot" }, element("h4", {}, title));
      this.place.append(box);
      const axis = { stroke: style("--quiet"), grid: { stroke: style("--line"), width: 1 }, ticks: { stroke: style("--line"), width: 1 }, font: "12px system-ui, sans-serif" };
      const narrow = this.width < 560;
      const names = this.data.rows.map((row) => (narrow && row.name.length > 10 ? `${row.name.slice(0, 9)}…` : row.name.length > 13 ? `${row.name.slice(0, 12)}…` : row.name));
      const left = rank === 1
        ? { ...axis, grid: { show: false }, ticks: { show: false }, size: narrow ? 72 : 92, splits: () => names.map((_, n) => n + 0.5), values: () => [...names].reverse() }
        : { ...axis, size: narrow ? 72 : 92, values: (_, ticks) => ticks.map(bytes) };
      const plot = new uPlot({
        width: this.width, height, pxAlign: 0,
        padding: [6, 10, 0, 0],
        cursor: { drag: { x: true, y: rank === 0, uni: 30, setScale: false }, points: { show: false }, y: rank === 0, sync: { key: this.figure.dataset.trace, setSeries: false, scales: ["x", null], filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } } },
        legend: { show: false },
        scales: { x: { time: false, auto: false }, y: { auto: false } },
        axes: [{ ...axis, size: 30, space: 70, values: (_, ticks, __, ___, step) => ticks.map((it) => `${it.toFixed(Math.max(0, Math.min(6, Math.ceil(-Math.log10(step || 1)))))} s`) }, left],
        series: [{}, { show: true, points: { show: false } }],
        hooks: {
          draw: [(it) => {
            it.ctx.save();
            const { left: x, top: y, width: w, height: h } = it.bbox;
            it.ctx.beginPath();
            it.ctx.rect(x, y, w, h);
            it.ctx.clip();
            draw(it);
            it.ctx.restore();
          }],
          setSelect: [(it) => this.select(it, rank)],
        },
      }, [[this.all[0], this.all[1]], [null, null]], box);
      plot.rank = rank;
      this.listen(plot, rank);
      return plot;
    }

    /// A part was drawn up with the pointer: show it.
    select(plot, rank) {
      const { left, top, width, height } = plot.select;
      if (width < 4 && height < 4) return;
      const x = width >= 4 ? [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")] : this.view.x;
      const tall = rank === 0 && height >= 4 && height < plot.over.clientHeight - 2;
      const y = tall ? [plot.posToVal(top + height, "y"), plot.posToVal(top, "y")] : null;
      // The others show it as well, for as long as it is drawn up.
      this.plots.forEach((it) => it.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false));
      this.move({ x, y });
    }

    listen(plot, rank) {
      const { over } = plot;
      const time = (event) => plot.posToVal(event.clientX - over.getBoundingClientRect().left, "x");
      over.addEventListener("mousemove", (event) => this.point(plot, rank, event));
      over.addEventListener("mouseleave", () => { tip.hidden = true; });
      over.addEventListener("dblclick", () => this.move({ x: this.all, y: null }));
      over.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.shiftKey) return;
        event.preventDefault();
        const by = event.deltaY || event.deltaX;
        if (event.ctrlKey) return this.zoom(by > 0 ? 1.25 : 0.8, time(event));
        const [a, b] = this.view.x;
        const step = (b - a) * 0.15 * Math.sign(by);
        this.move({ x: [a + step, b + step], y: null });
      }, { passive: false });
      if (rank === 0) {
        let down = null;
        over.addEventListener("pointerdown", (event) => { down = [event.clientX, event.clientY]; });
        over.addEventListener("click", (event) => {
          // The end of a drag is no click.
          if (down && Math.hypot(event.clientX - down[0], event.clientY - down[1]) > 4) return;
          const found = this.nearest(plot, event, 24);
          this.choose(found < 0 ? [] : this.carriers(found), found);
        });
      }
      this.touch(plot);
    }

    /// One finger moves the time, two zoom; up and down still scroll the page.
    touch(plot) {
      const { over } = plot;
      const fingers = new Map();
      over.style.touchAction = "pan-y";
      const end = (event) => fingers.delete(event.pointerId);
      over.addEventListener("pointerdown", (event) => { if (event.pointerType === "touch") fingers.set(event.pointerId, event.clientX); });
      for (const name of ["pointerup", "pointercancel", "pointerleave"]) over.addEventListener(name, end);
      over.addEventListener("pointermove", (event) => {
        if (!fingers.has(event.pointerId)) return;
        const before = [...fingers.values()];
        fingers.set(event.pointerId, event.clientX);
        const now = [...fingers.values()];
        const [a, b] = this.view.x;
        const perPixel = (b - a) / Math.max(1, over.clientWidth);
        if (now.length === 1) {
          const step = (before[0] - now[0]) * perPixel;
          this.move({ x: [a + step, b + step], y: null });
        } else {
          const [wide, was] = [Math.abs(now[0] - now[1]), Math.abs(before[0] - before[1])];
          if (wide > 10 && was > 10) this.zoom(was / wide, plot.posToVal((now[0] + now[1]) / 2 - over.getBoundingClientRect().left, "x"));
        }
      });
    }

    /// The stroke nearest to the pointer, or -1.
    nearest(plot, event, most) {
      const { strokes } = this.data;
      const box = plot.over.getBoundingClientRect();
      const [px, py] = [event.clientX - box.left, event.clientY - box.top];
      const [begin, end] = this.visible(plot.posToVal(px - most, "x"), plot.posToVal(px + most, "x"));
      let [best, found] = [most, -1];
      for (let i = begin; i < end; i++) {
        if (!this.shows(i)) continue;
        const [x0, x1] = [plot.valToPos(strokes.t[i], "x"), plot.valToPos(strokes.t[i] + strokes.d[i], "x")];
        const [y0, y1] = [plot.valToPos(strokes.from[i], "y"), plot.valToPos(strokes.from[i] + strokes.length[i], "y")];
        const far = distance(px, py, x0, y0, x1, y1);
        // What is rare is easier to hit.
        const less = this.kindOf(i) > 0 ? far - 3 : far;
        if (less < best) [best, found] = [less, i];
      }
      return found;
    }

    /// All strokes with bytes of this one.
    carriers(i) {
      const { n, from, length } = this.data.strokes;
      const [low, high] = [from[i], from[i] + length[i]];
      const all = [];
      for (let k = 0; k < n; k++) if (from[k] < high && from[k] + length[k] > low) all.push(k);
      return all;
    }

    limitAt(time, row = this.data.rows[0]) {
      if (!row) return null;
      const i = first(row.t, time + 1e-12) - 1;
      return i >= 0 && time <= row.t[i] + row.e[i] ? this.data.limits[row.k[i]] : null;
    }

    point(plot, rank, event) {
      const box = plot.over.getBoundingClientRect();
      const time = plot.posToVal(event.clientX - box.left, "x");
      let [title, lines] = ["", []];
      if (rank === 0) {
        const i = this.nearest(plot, event, 14);
        if (i >= 0) [title, lines] = [`${this.data.paths[this.pathOf(i)]}, ${KINDS[this.kindOf(i)][1]}`, this.about(i)];
      } else if (rank === 1) {
        const row = this.data.rows[this.data.rows.length - 1 - Math.floor(plot.posToVal(event.clientY - box.top, "y"))];
        const i = row ? first(row.t, time + 1e-12) - 1 : -1;
        if (i >= 0 && time <= row.t[i] + row.e[i]) {
          const limit = this.data.limits[row.k[i]];
          [title, lines] = [`${row.name}: ${limit.name}`, [["meaning", limit.meaning], ["from", seconds(row.t[i])], ["length", seconds(row.e[i])]]];
        }
      } else {
        title = seconds(time);
        this.data.flight.forEach((steps, subflow) => {
          const i = first(steps.t, time + 1e-12) - 1;
          const { path } = this.data.subflows[subflow];
          if (i >= 0) lines.push([`${this.data.paths[path]}`, `${bytes(steps.y[i])} of ${bytes(steps.w[i])}`]);
        });
      }
      if (!lines.length) { tip.hidden = true; return; }
      tip.hidden = false;
      tip.replaceChildren(element("b", {}, title), element("dl", {}, ...lines.flatMap(([what, value]) => [element("dt", {}, what), element("dd", {}, value)])));
      const { width, height } = tip.getBoundingClientRect();
      const beside = event.clientX + 14 + width > innerWidth - 8 ? event.clientX - 14 - width : event.clientX + 14;
      tip.style.left = `${Math.max(8, Math.min(beside, innerWidth - width - 8))}px`;
      tip.style.top = `${Math.max(8, Math.min(event.clientY + 14, innerHeight - height - 8))}px`;
    }

    /// The words about a stroke.
    about(i) {
      const { t, d, from, length, way } = this.data.strokes;
      const lines = [["left", d[i] > 0 ? `${seconds(t[i])} to ${seconds(t[i] + d[i])}` : seconds(t[i])], ["data", `${whole(from[i])} to ${whole(from[i] + length[i])} B`]];
      lines.push(way[i] >= 0 ? ["took", seconds(way[i] * 1e-6)] : ["arrived", way[i] === -1 ? "no" : "after the end of the capture"]);
      lines.push(...this.packets(i));
      const limit = this.limitAt(t[i]);
      if (limit) lines.push(["limit then", limit.name]);
      return lines;
    }

    /// The numbers of a stroke's packets in the captures.
    packets(i) {
      const { subflow, left, leftMore, came, cameMore } = this.data.strokes;
      const { files } = this.data.subflows[subflow[i]];
      const lines = [];
      for (const [n, numbers, more] of [[0, left, leftMore], [1, came, cameMore]]) {
        if (numbers[i] > 0) lines.push([files[n] === null ? "packet" : this.data.files[files[n]], `packet ${range(numbers[i], numbers[i] + more[i])}`]);
      }
      return lines;
    }

    choose(all, clicked = -1) {
      this.chosen = all;
      this.chosenBox.replaceChildren();
      if (clicked >= 0) {
        const { from, length, count, t, subflow, way } = this.data.strokes;
        const [low, high] = [from[clicked], from[clicked] + length[clicked]];
        const items = all.slice(0, 12).map((i) => {
          const words = [`${KINDS[this.data.strokes.copy[i]][1]} on ${this.data.paths[this.pathOf(i)]} at ${seconds(t[i])}`];
          if (count[i] > 1) words.push(`${count[i]} packets with bytes ${whole(from[i])} to ${whole(from[i] + length[i])}`);
          words.push(...this.packets(i).map(([file, numbers]) => `${numbers} of ${file}`));
          words.push(way[i] >= 0 ? `arrived ${seconds(way[i] * 1e-6)} later` : way[i] === -1 ? "did not arrive" : "was on its way when the capture ended");
          const { ends } = this.data.subflows[subflow[i]];
          return element("li", { title: `${ends[0]} > ${ends[1]}` }, `${words.join("; ")}.`);
        });
        if (all.length > 12) items.push(element("li", {}, `and ${all.length - 12} more.`));
        this.chosenBox.append(element("p", {}, element("b", {}, `Bytes ${whole(low)} to ${whole(high)}`), this.data.thinned ? " of the data were carried, as far as it is drawn, by" : " of the data were carried by"), element("ul", {}, ...items));
      }
      this.plots[0].redraw(false, false);
    }

    drawBands(plot, row, top, height, alpha) {
      const { ctx } = plot;
      const [from, to] = this.view.x;
      ctx.globalAlpha = alpha;
      for (let i = Math.max(0, first(row.t, from) - 1); i < row.t.length && row.t[i] <= to; i++) {
        const [a, b] = [plot.valToPos(Math.max(row.t[i], from), "x", true), plot.valToPos(Math.min(row.t[i] + row.e[i], to), "x", true)];
        ctx.fillStyle = COLOURS[this.data.limits[row.k[i]].name] ?? style("--quiet");
        ctx.fillRect(a, top, Math.max(b - a, 0.3), height);
      }
      ctx.globalAlpha = 1;
    }

    drawRows(plot) {
      const { ctx, bbox } = plot;
      const each = bbox.height / this.data.rows.length;
      this.data.rows.forEach((row, n) => {
        this.drawBands(plot, row, bbox.top + n * each + 1.5 * devicePixelRatio, each - 3 * devicePixelRatio, 1);
      });
    }

    drawData(plot) {
      const { ctx, bbox } = plot;
      const { strokes } = this.data;
      if (this.data.rows.length) this.drawBands(plot, this.data.rows[0], bbox.top, bbox.height, 0.13);
      const ratio = devicePixelRatio;
      const [begin, end] = this.visible(...this.view.x);
      const [X, Y] = [(v) => plot.valToPos(v, "x", true), (v) => plot.valToPos(v, "y", true)];
      if (end - begin < 250) this.drawWays(ctx, begin, end, X, Y);
      for (let path = 0; path < this.data.paths.length; path++) {
        ctx.beginPath();
        for (let i = begin; i < end; i++) {
          if (this.pathOf(i) !== path || !this.shows(i)) continue;
          const [x, y0] = [X(strokes.t[i]), Y(strokes.from[i])];
          let y1 = Y(strokes.from[i] + strokes.length[i]);
          // However far away, something of it is seen.
          if (y0 - y1 < 2 * ratio) y1 = y0 - 2 * ratio;
          ctx.moveTo(x, y0);
          ctx.lineTo(X(strokes.t[i] + strokes.d[i]), y1);
        }
        ctx.lineWidth = (end - begin < 2000 ? 2 : 1.4) * ratio;
        ctx.strokeStyle = ofPath(path);
        ctx.stroke();
      }
      this.drawSteps(plot, "acked", this.data.acked, style("--ack"), []);
      this.drawSteps(plot, "edge", this.data.edge, style("--edge"), [4, 3]);
      for (let i = begin; i < end; i++) {
        const kind = this.kindOf(i);
        if (kind === 0 || !this.shows(i)) continue;
        mark(ctx, kind, X(strokes.t[i]), Y(strokes.from[i] + strokes.length[i] / 2), ofPath(this.pathOf(i)), ratio);
      }
      for (const i of this.chosen) {
        ctx.strokeStyle = style("--text");
        ctx.lineWidth = 1.5 * ratio;
        const [x0, x1, y0, y1] = [X(strokes.t[i]), X(strokes.t[i] + strokes.d[i]), Y(strokes.from[i]), Y(strokes.from[i] + strokes.length[i])];
        ctx.strokeRect(x0 - 5 * ratio, y1 - 5 * ratio, x1 - x0 + 10 * ratio, y0 - y1 + 10 * ratio);
      }
    }

    /// The ways of single packets, from their departure to their arrival.
    drawWays(ctx, begin, end, X, Y) {
      const { t, from, way, count } = this.data.strokes;
      ctx.globalAlpha = 0.45;
      ctx.lineWidth = devicePixelRatio;
      for (let i = begin; i < end; i++) {
        if (way[i] < 0 || count[i] > 1 || !this.shows(i)) continue;
        ctx.strokeStyle = ofPath(this.pathOf(i));
        ctx.beginPath();
        ctx.moveTo(X(t[i]), Y(from[i]));
        ctx.lineTo(X(t[i] + way[i] * 1e-6), Y(from[i]));
        ctx.stroke();
      }
      ctx.globalAlpha = 1;
    }

    drawSteps(plot, key, steps, colour, dash, values = steps.y) {
      if (this.hidden.has(key) || !steps.t.length) return;
      const { ctx } = plot;
      const [from, to] = this.view.x;
      const [X, Y] = [(v) => plot.valToPos(v, "x", true), (v) => plot.valToPos(v, "y", true)];
      ctx.beginPath();
      let i = Math.max(0, first(steps.t, from) - 1);
      ctx.moveTo(X(steps.t[i]), Y(values[i]));
      for (i += 1; i < steps.t.length; i++) {
        const x = X(Math.min(steps.t[i], to));
        ctx.lineTo(x, Y(values[i - 1]));
        if (steps.t[i] > to) break;
        ctx.lineTo(x, Y(values[i]));
      }
      if (i === steps.t.length) ctx.lineTo(X(Math.min(to, this.end)), Y(values[i - 1]));
      ctx.setLineDash(dash.map((it) => it * devicePixelRatio));
      ctx.strokeStyle = colour;
      ctx.lineWidth = 1.4 * devicePixelRatio;
      ctx.stroke();
      ctx.setLineDash([]);
    }

    drawFlight(plot) {
      this.data.flight.forEach((steps, subflow) => {
        const { path } = this.data.subflows[subflow];
        this.drawSteps(plot, `path ${path}`, steps, ofPath(path), [2, 3], steps.w);
        this.drawSteps(plot, `path ${path}`, steps, ofPath(path), []);
      });
    }

    resize() {
      if (Math.abs(this.place.clientWidth - this.width) > 1) this.build();
    }
  }

  function distance(px, py, x0, y0, x1, y1) {
    const [dx, dy] = [x1 - x0, y1 - y0];
    const size = dx * dx + dy * dy;
    const part = size > 0 ? Math.max(0, Math.min(1, ((px - x0) * dx + (py - y0) * dy) / size)) : 0;
    return Math.hypot(px - x0 - part * dx, py - y0 - part * dy);
  }

  /// The mark of data that was sent again or lost.
  function mark(ctx, kind, x, y, colour, ratio = 1) {
    const r = 4 * ratio;
    ctx.beginPath();
    if (kind === 1) { ctx.moveTo(x - r, y - r); ctx.lineTo(x + r, y + r); ctx.moveTo(x - r, y + r); ctx.lineTo(x + r, y - r); }
    if (kind === 2) { ctx.moveTo(x, y - r - ratio); ctx.lineTo(x + r + ratio, y); ctx.lineTo(x, y + r + ratio); ctx.lineTo(x - r - ratio, y); ctx.closePath(); }
    if (kind === 3) ctx.arc(x, y, r, 0, 2 * Math.PI);
    ctx.lineWidth = 1.8 * ratio;
    ctx.strokeStyle = kind === 3 ? style("--lost") : colour;
    ctx.stroke();
  }
  function stroke(ctx, colour) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = 3;
    ctx.beginPath();
    ctx.moveTo(9, 2);
    ctx.lineTo(9, 14);
    ctx.stroke();
  }
  function line(ctx, colour, dash) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = 2;
    ctx.setLineDash(dash);
    ctx.beginPath();
    ctx.moveTo(0, 8);
    ctx.lineTo(18, 8);
    ctx.stroke();
  }

  for (const figure of document.querySelectorAll("figure.trace")) new Trace(figure);
})();
