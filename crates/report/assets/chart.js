// A figure as data becomes a Vega-Lite specification. Nothing here touches the page.
"use strict";

const anabranchChart = (() => {
  // Okabe and Ito, Color Universal Design (2008): told apart with every common form of colour blindness. Their yellow is too
  // pale on white and stands darker there; their black is white on dark ground.
  const COLOURS = {
    light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1b1f24", "#b5a300"],
    dark: ["#4aa3df", "#f07b2e", "#1fbf92", "#e095c1", "#f0b030", "#8fd0f7", "#f2f4f6", "#f0e442"],
  };
  const DASHES = [[1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [4, 4], [12, 3], [9, 2, 2, 2, 2, 2]];
  const SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left"];
  const INK = {
    light: { text: "#1b1f24", quiet: "#57606a", line: "#d5dae0", ground: "#ffffff" },
    dark: { text: "#e7eaee", quiet: "#a3adb8", line: "#3a424b", ground: "#14171b" },
  };
  const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
  /// A series with more points in a panel is a line without marks, its intervals a band.
  const MARKED = 24;

  /// A place in the palette for each name of a section, so that it looks alike in all figures. Names that no chain of figures
  /// connects are numbered apart: each starts with the first colour. What a paper states takes the place of the system it is about
  /// ("LATE, as the paper states" that of "LATE"); theory is numbered by itself.
  function places(systems, figures) {
    const found = new Map();
    const all = figures.flatMap((figure) => figure.series);
    const named = (series) => series.filter((it) => it.origin === "measured").map((it) => it.name);
    let groups = [];
    for (const names of figures.map((figure) => new Set(named(figure.series)))) {
      const touched = groups.filter((group) => [...group].some((name) => names.has(name)));
      groups = [...groups.filter((group) => !touched.includes(group)), new Set([...touched.flatMap((group) => [...group]), ...names])];
    }
    for (const group of groups) {
      // Those that are seen at first, so that their colours differ, then systems in their own order.
      const seen = figures.flatMap((figure) => figure.first ?? []);
      const ordered = [...[...seen, ...systems].filter((name) => group.has(name)), ...group];
      let next = 0;
      for (const name of ordered) if (!found.has(name)) found.set(name, next++);
    }
    const measured = named(all).sort((a, b) => b.length - a.length);
    let others = found.size;
    let curves = 0;
    for (const { name, origin } of all) {
      if (found.has(name)) continue;
      if (origin === "theory") found.set(name, curves++);
      else found.set(name, found.get(measured.find((other) => name.startsWith(other))) ?? others++);
    }
    return found;
  }

  /// The look of the name at the n-th place. Beyond the last colour they begin again, each with another shape: 64 places differ in one of
  /// the two.
  function look(n, origin, theme) {
    const paper = origin === "paper", theory = origin === "theory";
    const round = Math.floor(n / COLOURS[theme].length);
    return {
      colour: theory ? [INK[theme].text, INK[theme].quiet][n % 2] : COLOURS[theme][n % COLOURS[theme].length],
      dash: theory ? DASHES[1 + (n % (DASHES.length - 1))] : paper ? [2, 4] : DASHES[n % DASHES.length],
      shape: SHAPES[(n + 3 * round) % SHAPES.length],
      hollow: paper,
    };
  }

  /// Returns true if a series is a line without marks: theory, steps, or too many points for them.
  function plain(series, mark) {
    if (series.origin === "theory" || mark === "step") return true;
    const counts = new Map();
    for (let i = 0; i < series.length; i++) counts.set(at(series.p, i), (counts.get(at(series.p, i)) ?? 0) + 1);
    return [...counts.values()].some((count) => count > MARKED);
  }

  const at = (column, i) => (Array.isArray(column) ? column[i] : column) ?? null;
  const isCategory = (axis) => axis.scale === "category";
  const titled = (axis) => (axis.unit ? `${axis.label} [${axis.unit}]` : axis.label);

  /// The points of the series that are shown, one object each.
  function rows(figure, shown) {
    const all = [];
    figure.series.forEach((series, k) => {
      if (!shown.has(k)) return;
      const dense = plain(series, figure.mark);
      for (let i = 0; i < series.length; i++) {
        const row = { s: series.name, k, o: series.origin, d: dense, i };
        const panel = at(series.p, i), category = at(series.c, i);
        if (panel !== null) row.p = figure.panels[panel];
        const values = at(series.v, i);
        if (values) row.v = values;
        for (const [to, from] of [["x", series.x], ["e", series.e], ["y", series.y], ["l", series.l], ["h", series.h], ["n", series.n], ["u", series.u], ["t", series.t]]) {
          row[to] = at(from, i);
        }
        if (category !== null) row.c = figure.categories[category];
        else if (isCategory(figure.mark === "span" ? figure.y : figure.x)) row.c = String(figure.mark === "span" ? row.y : row.x);
        all.push(row);
      }
    });
    return all;
  }

  const NUMBERS = vega.defaultLocale();
  /// Numbers as people read them: SI prefixes where they are large, otherwise as they are.
  function number(value) {
    if (value === null || !Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    if (size >= 1e4) return NUMBERS.format(".4~s")(value);
    if (size !== 0 && size < 1e-3) return NUMBERS.format(".3~e")(value);
    return NUMBERS.format(size >= 1000 ? ",.0~f" : ".4~r")(value);
  }

  const withUnit = (value, axis) => {
    const text = number(value);
    if (!axis.unit) return text;
    // "5.2M" and "bit/s" are "5.2 Mbit/s".
    const prefixed = /^(.*\d)([kMGTP])$/.exec(text);
    return prefixed ? `${prefixed[1]} ${prefixed[2]}${axis.unit}` : `${text} ${axis.unit}`;
  };

  /// Returns true if the horizontal axis is the time, of which a part can be shown.
  const timed = (figure) => figure.x.label === "time" && figure.x.unit === "s" && ["line", "step", "point"].includes(figure.mark);

  /// The whole time of such figures.
  function course(figures) {
    const times = figures.filter(timed).flatMap((figure) => figure.series.flatMap((series) => [series.x].flat().filter(Number.isFinite)));
    return times.length > 0 ? [Math.min(0, ...least(times)), ...most(times)] : [0, 1];
  }

  /// The extent of the numbers within a part of the time, with a little room; lines count that cross its ends.
  function heights(figure, shown, [from, to]) {
    const log = figure.y.scale === "log", seen = [];
    figure.series.forEach((series, k) => {
      if (!shown.has(k)) return;
      const x = (i) => (i < 0 || i >= series.length ? null : at(series.x, i));
      for (let i = 0; i < series.length; i++) {
        const within = x(i) >= from && x(i) <= to;
        const crosses = figure.mark !== "point" && ((x(i) < from && x(i + 1) >= from) || (x(i) > to && x(i - 1) <= to));
        if (within || crosses) seen.push(at(series.y, i), at(series.l, i), at(series.h, i));
      }
    });
    const numbers = seen.filter((value) => Number.isFinite(value) && (!log || value > 0));
    if (numbers.length === 0) return log ? [1, 10] : [0, 1];
    let [low, high] = [least(numbers)[0], most(numbers)[0]];
    if (log) return [low / 1.1, high * 1.1];
    // What is a size begins at zero; a sequence number need not.
    if (figure.mark !== "point" && low > 0 && low < 0.7 * high) low = 0;
    if (low === high) high += Math.abs(high) || 1;
    const room = (high - low) * 0.05;
    return [low === 0 ? 0 : low - room, high + room];
  }

  /// The words about a point: pairs of a name and a value.
  function about(figure, row) {
    const lines = [];
    if (row.p !== undefined && figure.panelLabel) lines.push([figure.panelLabel, row.p]);
    if (figure.mark === "span") {
      if (row.c !== undefined) lines.push([figure.y.label || "row", row.c]);
      lines.push([figure.x.label, row.x === 0 ? withUnit(row.e, figure.x) : `${number(row.x)} to ${withUnit(row.e, figure.x)}`]);
      if (row.x !== 0 && row.e !== null) lines.push(["length", withUnit(row.e - row.x, figure.x)]);
    } else {
      lines.push([figure.x.label, row.c !== undefined ? row.c : withUnit(row.x, figure.x)]);
      lines.push([figure.y.label, withUnit(row.y, figure.y)]);
      if (row.l !== null && row.h !== null) lines.push(["95 % interval", `${number(row.l)} to ${withUnit(row.h, figure.y)}`]);
    }
    if (row.n !== null) lines.push(["repetitions", String(row.n)]);
    if (row.t !== null) lines.push(["note", row.t]);
    return lines;
  }

  /// Units that people write with a prefix where numbers are large.
  const PREFIXED = ["B", "bit", "bit/s", "B/s"];
  const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];

  /// The extent of positive numbers, for a logarithmic axis.
  function positive(values) {
    const kept = values.filter((value) => value !== null && value > 0);
    return kept.length ? [Math.min(...least(kept)), Math.max(...most(kept))] : [1, 10];
  }
  // Spreading a long array into arguments overflows the stack.
  const least = (values) => [values.reduce((a, b) => (b < a ? b : a))];
  const most = (values) => [values.reduce((a, b) => (b > a ? b : a))];

  /// Powers of ten within, and 2 and 5 of them where there are few.
  function logTicks([low, high]) {
    const decades = Math.log10(high / low);
    const steps = decades > 5 ? [1] : decades > 1.5 ? [1, 3] : [1, 2, 5];
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      for (const step of steps) {
        const tick = Number(`${step}e${power}`);
        if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
      }
    }
    return ticks;
  }

  const LABEL = "abs(datum.value) >= 1e4 ? format(datum.value, '~s') : datum.value != 0 && abs(datum.value) < 1e-4 ? format(datum.value, '~e') : format(datum.value, abs(datum.value) >= 1000 ? ',~f' : '~r')";

  /// Scale and axis of a channel. `values`: every number on it, ends of intervals included.
  function channel(axis, values, { narrow, fromZero, length, edge }) {
    const title = titled(axis);
    if (axis.scale === "log") {
      // The points of a study are few and chosen: they are the ticks.
      const distinct = narrow ? [] : [...new Set(values.filter((value) => value > 0))];
      const few = distinct.length > 1 && distinct.length <= 9 ? distinct.sort((a, b) => a - b) : null;
      const [low, high] = positive(values);
      // A little room at both ends.
      const room = Math.max(1.1, (high / low) ** 0.04);
      const domain = [low / room, high * room];
      return { type: "quantitative", title, scale: { type: "log", domain, nice: false, clamp: true }, axis: { values: few ?? logTicks(domain), labelExpr: LABEL, labelOverlap: true } };
    }
    const numbers = values.filter((value) => value !== null);
    const [low, high] = numbers.length ? [least(numbers)[0], most(numbers)[0]] : [0, 1];
    // Zero belongs on the axis unless all numbers are far from it and close together.
    const zero = fromZero || (low >= 0 ? low < 0.7 * high : high <= 0 ? high > 0.7 * low : true);
    const domain = [zero ? Math.min(0, low) : low, zero ? Math.max(0, high) : high];
    if (domain[0] === domain[1]) domain[1] += 1;
    const [factor, prefix] = (PREFIXED.includes(axis.unit) && PREFIXES.find(([factor]) => Math.max(...domain.map(Math.abs)) >= 2 * factor)) || [1, ""];
    const unit = { ...axis, unit: prefix + axis.unit };
    const labels = factor === 1 ? LABEL : `format(datum.value / ${factor}, ',~f')`;
    const tickCount = Math.max(3, Math.round(length / (narrow ? 45 : 80)));
    return { type: "quantitative", title: titled(unit), scale: { domain, ...(edge || narrow || fromZero ? { nice: !edge } : { nice: false, padding: 14 }), zero: false }, axis: { labelExpr: labels, labelOverlap: true, tickCount } };
  }

  /// The layers of one panel.
  function layers(figure, data, { theme, width, height, panels, part }) {
    const span = figure.mark === "span", bar = figure.mark === "bar";
    const joined = figure.mark === "line" || figure.mark === "step";
    const categorical = isCategory(span ? figure.y : figure.x) || bar;
    // Categories stand one below the other, where names have room: numbers are on the other axis then.
    const lying = span || bar;
    const ys = span ? [] : data.flatMap((row) => [row.y, row.l, row.h, ...(row.v ?? [])]);
    const xs = span ? data.flatMap((row) => [row.x, row.e]) : data.map((row) => row.x);
    const names = figure.categories.length ? figure.categories : [...new Set(data.map((row) => row.c))];
    const dense = joined && data.some((row) => row.d && row.o !== "theory");

    const longest = names.reduce((n, name) => Math.max(n, String(name).length), 0);
    const slanted = categorical && !lying && longest * 6.6 > (width / Math.max(names.length, 1)) * 0.95;
    const category = (axis) => ({
      field: "c", type: "nominal", sort: names, title: titled(axis) || null, scale: { domain: names },
      axis: lying ? { labelLimit: Math.max(160, width * 0.5), labelOverlap: false, grid: bar, gridOpacity: 0.5, zindex: span ? 1 : 0 } : { labelAngle: slanted ? -40 : 0, labelLimit: 150, labelOverlap: slanted ? false : true, grid: false },
    });
    const xNumbers = { field: "x", ...channel(figure.x, xs, { narrow: false, fromZero: span, length: width, edge: figure.mark === "point" || dense }) };
    const yNumbers = (narrow, length) => ({ field: "y", ...channel(figure.y, ys, { narrow, fromZero: false, length, edge: false }) });
    const x = bar ? yNumbers(false, width) : categorical && !lying ? category(figure.x) : xNumbers;
    const y = bar ? category(figure.x) : span ? category(figure.y) : yNumbers(true, height);
    if (part) {
      // Signals, so that another part is shown without drawing anew.
      const within = (scale, low, high) => ({ ...(scale.type ? { type: scale.type } : {}), domainMin: { expr: low }, domainMax: { expr: high }, nice: false, zero: false });
      x.scale = within({}, "timeFrom", "timeTo");
      y.scale = within(y.scale, "leastSeen", "mostSeen");
      if (y.scale.type === "log") delete y.scale.zero;
    }
    // One below the other only where categories have several.
    const beside = bar && new Set(data.map((row) => `${row.p}/${row.c}`)).size < data.length;
    const offset = beside ? { yOffset: { field: "s", type: "nominal", sort: null, scale: { domain: figure.series.map((it) => it.name).filter((name) => data.some((row) => row.s === name)), paddingInner: 0.1 } } } : {};
    const order = { detail: { field: "k", type: "nominal" } };
    const result = [];
    const has = (test) => data.some(test);

    // Zero is worth a line where numbers lie on both sides of it.
    if (!span && figure.y.scale === "linear" && has((row) => row.y < 0) && has((row) => row.y > 0)) {
      const { field: _, ...numbers } = bar ? x : y;
      result.push({ data: { values: [{}] }, mark: { type: "rule", strokeWidth: 1, color: INK[theme].quiet }, encoding: { [bar ? "x" : "y"]: { ...numbers, datum: 0 } } });
    }
    const interval = "datum.l !== null && datum.h !== null && datum.y !== null";
    const floor = figure.y.scale === "log" ? (bar ? x : y).scale.domain[0] : null;
    // Strokes of repetitions lie behind what is worked out from them.
    if (bar && has((row) => row.v)) {
      const mark = { type: "tick", orient: "vertical", size: beside ? 8 : 14, thickness: 1.2, opacity: 0.4, tooltip: false };
      result.push({ transform: [{ filter: "isValid(datum.v)" }, { flatten: ["v"] }], mark, encoding: { x: { ...x, field: "v" }, y, ...offset, color: { field: "s", type: "nominal" } } });
    }
    const low = floor === null ? interval : { and: [interval, "datum.h > 0"] };
    const ends = bar ? { x: { ...x, field: "l" }, x2: { field: "h" } } : { y: { ...y, field: "l" }, y2: { field: "h" } };
    const colour = { field: "s", type: "nominal" };
    const intervals = (test) => !span && has((row) => row.l !== null && row.h !== null && test(row));
    if (joined && intervals((row) => row.d)) {
      const mark = { type: "area", opacity: 0.18, tooltip: false, line: false, interpolate: figure.mark === "step" ? "step-after" : "linear" };
      result.push({ transform: [{ filter: { and: [low, "datum.d"] } }], mark, encoding: { x, ...ends, color: colour, ...order } });
    }
    if (intervals((row) => !joined || !row.d)) {
      const stroke = { color: bar ? { value: INK[theme].text } : colour };
      const transform = [{ filter: joined ? { and: [low, "!datum.d"] } : low }];
      result.push({ transform, mark: { type: "rule", strokeWidth: 1.3, strokeDash: [1, 0] }, encoding: { x, y, ...ends, ...offset, ...stroke } });
      for (const field of ["l", "h"]) {
        const end = bar ? { x: { ...x, field }, y } : { x, y: { ...y, field } };
        result.push({ transform, mark: { type: "tick", orient: bar ? "vertical" : "horizontal", size: bar ? 6 : 7, thickness: 1.3 }, encoding: { ...end, ...offset, ...stroke } });
      }
    }
    const common = { color: { field: "s", type: "nominal" } };
    if (bar) {
      const mark = { type: "point", filled: true, opacity: 1, size: beside ? 50 : 70, stroke: INK[theme].ground, strokeWidth: 1 };
      result.push({ transform: [{ filter: "datum.y !== null" }], mark, encoding: { x, y, ...offset, ...common, shape: { field: "s", type: "nominal" } } });
    } else if (span) {
      result.push({ mark: { type: "bar", stroke: INK[theme].ground, strokeWidth: 0.5 }, encoding: { x, x2: { field: "e" }, y, ...common } });
    } else if (joined) {
      const mark = { type: "line", strokeWidth: 2, interpolate: figure.mark === "step" ? "step-after" : "linear", invalid: "break-paths-filter-domains" };
      result.push({ mark, encoding: { x, y, ...common, strokeDash: { field: "s", type: "nominal" }, order: { field: "i" } } });
      const marks = (origin, mark) => {
        const test = { and: ["!datum.d", "datum.y !== null", { field: "o", equal: origin }] };
        if (has((row) => !row.d && row.o === origin)) result.push({ transform: [{ filter: test }], mark: { type: "point", opacity: 1, ...mark }, encoding: { x, y, ...common, shape: { field: "s", type: "nominal" } } });
      };
      marks("measured", { filled: true, size: panels > 1 ? 32 : 46, stroke: INK[theme].ground, strokeWidth: 0.8 });
      marks("paper", { filled: false, size: 60, strokeWidth: 1.8 });
      // Wider than what is seen, so that it can be pointed at.
      result.push({ transform: [{ filter: "datum.y !== null" }], mark: { type: "circle", opacity: 0, size: dense ? 80 : 260, tooltip: true }, encoding: { x, y, tooltip: { field: "s" } } });
    } else {
      // Crowds in small, what is rare larger and on top of them. An edge in the colour of the ground parts the rare ones; in a
      // crowd each would wash out the one before it.
      const counts = new Map();
      for (const row of data) counts.set(row.k, (counts.get(row.k) ?? 0) + 1);
      const sizes = [[400, Infinity, 9], [60, 400, 16], [0, 60, 26]];
      for (const [above, upTo, size] of sizes) {
        const some = [...counts.keys()].filter((k) => counts.get(k) > above && counts.get(k) <= upTo);
        const mark = { type: "point", filled: true, opacity: 1, size, stroke: above > 0 ? null : INK[theme].ground, strokeWidth: 0.6 };
        const filter = { and: ["datum.y !== null", { field: "k", oneOf: some }] };
        if (some.length) result.push({ transform: [{ filter }], mark, encoding: { x, y, ...common, shape: { field: "s", type: "nominal" } } });
      }
    }
    // What runs that did not finish have brought is marked, whatever its series looks like.
    if (has((row) => row.u !== null && row.y !== null)) {
      const mark = { type: "point", shape: "triangle-up", filled: false, size: 130, strokeWidth: 1.6, opacity: 1, color: INK[theme].text, tooltip: false };
      result.push({ transform: [{ filter: "datum.u !== null && datum.y !== null" }], mark, encoding: { x, y, ...offset } });
    }
    for (const layer of result) {
      if (layer.mark.type !== "circle" && layer.mark.type !== "rule" && layer.mark.type !== "tick") layer.mark.tooltip ??= !joined;
      if (part) layer.mark.clip = true;
      if (layer.mark.tooltip === true) layer.encoding.tooltip = { field: "s" };
    }
    return joined ? apart(result, data) : result;
  }

  /// Systems that met the same luck measure nearly the same: whiskers would cover each other. Each series stands a few pixels
  /// beside the next, those without marks where they are.
  function apart(layers, data) {
    const marked = [...new Set(data.filter((row) => !row.d).map((row) => row.k))];
    if (marked.length < 2) return layers;
    const step = Math.min(5, 20 / (marked.length - 1));
    const of = (layer, filter, xOffset) => ({ ...layer, transform: [{ filter }, ...(layer.transform ?? [])], mark: { ...layer.mark, xOffset } });
    return layers.flatMap((layer) => {
      if (layer.data || layer.mark.type === "area") return [layer];
      const still = data.some((row) => row.d) ? [of(layer, "datum.d", 0)] : [];
      return [...still, ...marked.map((k, n) => of(layer, { field: "k", equal: k }, (n - (marked.length - 1) / 2) * step))];
    });
  }

  function config(theme) {
    const ink = INK[theme];
    return {
      font: FONT,
      view: { stroke: null },
      axis: {
        labelColor: ink.text, titleColor: ink.text, labelFlush: false, domainColor: ink.quiet, tickColor: ink.quiet, gridColor: ink.line, gridOpacity: 0.8,
        labelFontSize: 12, titleFontSize: 12.5, titleFontWeight: 500, titlePadding: 8, tickSize: 4, labelPadding: 4,
      },
      title: { color: ink.text, fontSize: 12.5, fontWeight: 600, anchor: "middle", offset: 8 },
      bar: { continuousBandSize: 12 },
      scale: { bandPaddingInner: 0.18, bandPaddingOuter: 0.1 },
    };
  }

  /// The specification for a place of that width. `legend`: inside the drawing, for exports.
  /// `part`: of the time, where it can be changed. `same`: panels share their axes; otherwise each has its own for what is measured.
  function specification(figure, { places: of, shown, theme, width, columns, panelWidth, legend, part, same = false }) {
    const all = rows(figure, shown);
    const visible = figure.series.filter((_, k) => shown.has(k));
    const looks = visible.map((series) => look(of.get(series.name), series.origin, theme));
    const domain = visible.map((series) => series.name);
    const panels = figure.panels.length ? figure.panels : [null];
    const span = figure.mark === "span";
    // Numbers are on the horizontal axis, and categories one below the other.
    const lying = span || figure.mark === "bar";
    const names = lying ? Math.max(1, figure.categories.length || new Set(all.map((row) => row.c)).size) : 0;
    const height = lying ? Math.max(60, names * (span ? 26 : lines(all))) : panels.length > 1 ? Math.round(Math.min(260, Math.max(190, panelWidth * 0.7))) : Math.round(Math.min(360, Math.max(220, panelWidth * 0.52)));
    const own = !same && !part && panels.length > 1;
    const sizes = { theme, width: panelWidth, height, panels: panels.length, part };
    const drawn = new Map(panels.map((panel) => [panel, own ? layers(figure, all.filter((row) => row.p === panel), sizes) : null]));
    if (!own) {
      const shared = layers(figure, all, sizes);
      panels.forEach((panel) => drawn.set(panel, shared));
    }
    // The page has a legend of its own, which can be pressed; exports have one that is drawn.
    const scales = {
      color: { scale: { domain, range: looks.map((it) => it.colour) }, legend: null },
      strokeDash: { scale: { domain, range: looks.map((it) => it.dash) }, legend: null },
      shape: { scale: { domain, range: looks.map((it) => it.shape) }, legend: null },
    };
    for (const layer of new Set([...drawn.values()].flat())) {
      for (const [name, parts] of Object.entries(scales)) {
        if (layer.encoding[name]?.field && !layer.encoding[name].scale) layer.encoding[name] = { ...layer.encoding[name], ...parts };
      }
    }
    // In two lines where one is wider than the panel.
    const titleOf = (panel) => {
      const words = figure.panelLabel ? [`${figure.panelLabel}:`, String(panel)] : [String(panel)];
      return words.join(" ").length * 7.2 > panelWidth ? words : words.join(" ");
    };
    const one = (panel, n) => ({
      ...(panel === null ? {} : { title: titleOf(panel) }),
      width: panelWidth, height,
      ...(panel === null ? {} : { transform: [{ filter: { field: "p", equal: panel } }] }),
      layer: drawn.get(panel).map((layer) => {
        // The title of the vertical axis stands once in a row of panels.
        const y = layer.encoding.y;
        const untitled = n % columns !== 0 && y?.field ? { y: { ...y, title: null } } : {};
        return { ...layer, encoding: { ...layer.encoding, ...untitled } };
      }),
    });
    const panelled = {
      data: { values: all },
      columns,
      spacing: { row: 24, column: 18 },
      concat: panels.map(one),
      resolve: { scale: { x: own && lying ? "independent" : "shared", y: own && !lying ? "independent" : "shared", color: "shared", shape: "shared", strokeDash: "shared" } },
    };
    return {
      $schema: "https://vega.github.io/schema/vega-lite/v6.json",
      config: config(theme),
      ...(part ? { params: [["timeFrom", part.time[0]], ["timeTo", part.time[1]], ["leastSeen", part.heights[0]], ["mostSeen", part.heights[1]]].map(([name, value]) => ({ name, value })) } : {}),
      background: legend ? INK[theme].ground : "transparent",
      padding: legend ? 12 : { left: 2, right: 6, top: 4, bottom: 2 },
      ...(legend ? { vconcat: [drawnLegend(figure, visible, looks, theme, width), panelled], spacing: 14 } : panelled),
    };
  }

  /// Height of the line of a category: room for each of its series.
  function lines(data) {
    const counts = new Map();
    for (const { p, c } of data) counts.set(`${p}/${c}`, (counts.get(`${p}/${c}`) ?? 0) + 1);
    return Math.max(22, 14 * Math.max(1, ...counts.values()) + 8);
  }

  /// A legend as a drawing: line, mark and name of each series, from left to right and in as many rows as it takes.
  function drawnLegend(figure, visible, looks, theme, width) {
    const [row, sample] = [20, 30];
    const block = figure.mark === "span", points = figure.mark === "point" || figure.mark === "bar";
    let [x, y, widest] = [0, row / 2, 0];
    const layer = visible.flatMap((series, n) => {
      const look = looks[n], length = sample + 24 + series.name.length * 7;
      if (x > 0 && x + length > width) [x, y] = [0, y + row];
      const at = (px) => ({ x: { value: px }, y: { value: y } });
      const parts = [{ mark: { type: "text", align: "left", baseline: "middle", fontSize: 12, color: INK[theme].text, text: series.name, limit: width }, encoding: at(x + sample + 6) }];
      if (block) parts.push({ mark: { type: "point", shape: "square", filled: true, size: 150, opacity: 1, color: look.colour }, encoding: at(x + sample - 8) });
      if (!block && !points) parts.push({ mark: { type: "rule", strokeWidth: 2, strokeDash: look.dash, color: look.colour }, encoding: { ...at(x), x2: { value: x + sample } } });
      if (!block && (points || !plain(series, figure.mark))) parts.push({ mark: { type: "point", shape: look.shape, filled: !look.hollow, size: 50, opacity: 1, color: look.colour, strokeWidth: 1.6 }, encoding: at(x + sample / 2) });
      x += length;
      widest = Math.max(widest, x);
      return parts;
    });
    return { data: { values: [{}] }, width: Math.max(1, widest), height: y + row / 2, layer };
  }

  /// The number of panels that fit side by side, and about how wide each may be.
  function layout(figure, width) {
    const panels = Math.max(1, figure.panels.length);
    const most = Math.max(1, Math.min(panels, Math.floor(width / (figure.columns ? 200 : 270)), figure.columns ?? 4));
    // As many rows as that takes, and in each as many as in the others: four are two by two, not three and one. A row of a grid
    // is broken into equal parts, so that what stands below each other belongs together: three are one by one if not side by side.
    const inRow = figure.columns ?? panels;
    let columns = Math.ceil(inRow / Math.ceil(inRow / most));
    while (figure.columns && inRow % columns !== 0) columns--;
    const labels = figure.mark === "span" || figure.mark === "bar" ? Math.min(width * 0.4, 30 + 6.6 * Math.max(...figure.categories.map((name) => name.length), 4)) : 46;
    return { columns, panelWidth: Math.max(120, Math.floor((width - 24 - columns * labels - (columns - 1) * 18) / columns)) };
  }

  /// The specification of a drawing that stands by itself, its legend inside: 640 wide, or as wide as its panels need.
  function alone(figure, { places: of, shown, theme, width = Math.max(640, Math.min(4, figure.panels.length) * 300), part, same }) {
    return specification(figure, { places: of, shown, theme, width, legend: true, part, same, ...layout(figure, width) });
  }

  /// A view, not drawn yet. Text is never evaluated as code: expressions go to Vega's interpreter.
  function view(specified, renderer, container) {
    const compiled = vegaLite.compile(specified, { logger: quiet }).spec;
    const options = { renderer, expr: vegaInterpreter, loader: NO_LOADER, logLevel: vega.Error };
    const made = new vega.View(vega.parse(compiled, null, { ast: true }), options);
    if (container) made.initialize(container).hover();
    return made;
  }
  const refuse = () => Promise.reject(new Error("a report loads nothing"));
  const NO_LOADER = { load: refuse, sanitize: refuse, http: refuse, file: refuse };
  const quiet = { level: () => quiet, error: (...words) => (console.error(...words), quiet), warn: () => quiet, info: () => quiet, debug: () => quiet };

  /// The raw data, one line per point.
  function csv(figure) {
    const cell = (value) => {
      const text = value === null || value === undefined ? "" : String(value);
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const lines = [["series", "origin", "panel", "category", titled(figure.x), "x_end", titled(figure.y), "low", "high", "n", "unfinished", "note"]];
    figure.series.forEach((series) => {
      for (let i = 0; i < series.length; i++) {
        const panel = at(series.p, i), category = at(series.c, i);
        lines.push([
          series.name, series.origin, panel === null ? "" : figure.panels[panel], category === null ? "" : figure.categories[category],
          at(series.x, i), at(series.e, i), at(series.y, i), at(series.l, i), at(series.h, i), at(series.n, i), at(series.u, i), at(series.t, i),
        ]);
      }
    });
    return lines.map((line) => line.map(cell).join(",") + "\r\n").join("");
  }

  return { look, places, plain, timed, course, heights, specification, layout, alone, view, about, csv, rows };
})();
