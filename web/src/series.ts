// Curves of a run over time: uPlot, several under one another with one pointer.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { bytes, h, number } from "./dom";
import { colour, ofPath, onTheme } from "./theme";
import type { Movie } from "./types";

interface Line { name: string; values: (number | null)[]; colour: () => string; dash?: number[] }
interface Panel { title: string; unit: "B" | "packets" | "segments"; lines: Line[] }

/// Bytes in flight on each path at the times of the samples: sent, and neither arrived nor lost long ago.
export function inFlight(movie: Movie): number[][] {
  const { packets, time } = movie;
  return movie.paths.map((_, path) => {
    const changes: [number, number][] = [];
    packets.sent.forEach((sent, n) => {
      if (packets.path[n] !== path || packets.kind[n] === 3) return;
      const arrived = packets.arrived[n];
      changes.push([sent, packets.length[n] ?? 0]);
      if (typeof arrived === "number") changes.push([arrived, -(packets.length[n] ?? 0)]);
      // Where it was lost is not known: it counts for as long as one that arrives.
      else changes.push([sent + typical(movie, path), -(packets.length[n] ?? 0)]);
    });
    changes.sort(([a], [b]) => a - b);
    let [next, now] = [0, 0];
    return time.map((at) => {
      while (next < changes.length && (changes[next]?.[0] ?? 0) <= at) now += changes[next++]?.[1] ?? 0;
      return Math.max(0, now);
    });
  });
}

const medians = new WeakMap<Movie, number[]>();
/// The median time that data took on a path.
export function typical(movie: Movie, path: number): number {
  let found = medians.get(movie);
  if (!found) {
    found = movie.paths.map((_, of) => {
      const all = movie.packets.sent.flatMap((sent, n) => {
        const arrived = movie.packets.arrived[n];
        return movie.packets.path[n] === of && movie.packets.kind[n] !== 3 && typeof arrived === "number" ? [arrived - sent] : [];
      }).sort((a, b) => a - b);
      return all[Math.floor(all.length / 2)] ?? 0.05;
    });
    medians.set(movie, found);
  }
  return found[path] ?? 0.05;
}

function panels(movie: Movie): Panel[] {
  const flight = inFlight(movie);
  const each = (columns: number[][], suffix = "", dash?: number[]): Line[] => movie.paths.map((name, path) => ({
    name: name + suffix, values: columns[path] ?? [], colour: () => ofPath(path), ...(dash ? { dash } : {}),
  }));
  return [
    { title: "Congestion windows, and bytes in flight (dotted)", unit: "B", lines: [...each(movie.cwnd, " window"), ...each(flight, " in flight", [2, 3])] },
    { title: "Queues in front of the links", unit: "packets", lines: each(movie.queued) },
    { title: "Delivered by path", unit: "B", lines: each(movie.received) },
    { title: "At the receiver: waiting for missing data, or unread", unit: "B", lines: [{ name: "buffered", values: movie.buffered, colour: () => colour("--text") }] },
  ];
}

const said = (value: number | null | undefined, unit: Panel["unit"]) => (value === null || value === undefined ? "–" : unit === "B" ? bytes(value) : `${number(value)} ${unit}`);

/// The curves. `at` moves a line through all of them; `chosen` is called with the time that the reader points at.
export function curves(movie: Movie, chosen: (at: number) => void): { element: HTMLElement; at(time: number): void } {
  const box = h("div", { className: "curves" });
  let now = 0;
  const plots: uPlot[] = [];
  const sync = uPlot.sync(`run-${Math.random()}`);
  const make = () => {
    plots.splice(0).forEach((plot) => plot.destroy());
    box.replaceChildren(...panels(movie).map((panel) => {
      const place = h("div", { className: "plot" });
      const most = Math.max(0, ...panel.lines.flatMap((line) => line.values.filter((it): it is number => it !== null)));
      const legend = h("p", { className: "legend-line" }, ...panel.lines.filter((line) => !line.dash).map((line) => h("span", {},
        h("span", { className: "key", style: `background: ${line.colour()}` }), line.name.replace(/ window$/, ""))));
      const figure = h("figure", { role: "group", "aria-label": `${panel.title}; at most ${said(most, panel.unit)}` }, h("h4", {}, panel.title), legend, place);
      requestAnimationFrame(() => {
        if (!place.isConnected) return;
        const plot = new uPlot({
          width: Math.max(200, place.clientWidth), height: 150,
          cursor: { sync: { key: sync.key }, drag: { x: true, y: false }, focus: { prox: 20 } },
          legend: { show: false },
          scales: { x: { time: false }, y: { range: (_, __, max) => [0, Math.max(1, max * 1.05)] } },
          axes: [
            { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, values: (_, ticks) => ticks.map((it) => `${number(it, 4)} s`), size: 30 },
            { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, size: 62, values: (_, ticks) => ticks.map((it) => (panel.unit === "B" ? bytes(it) : String(it))) },
          ],
          series: [{}, ...panel.lines.map((line) => ({
            label: line.name, stroke: line.colour(), width: 1.5, points: { show: false }, ...(line.dash ? { dash: line.dash } : {}),
            ...(uPlot.paths.stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}),
          }))],
          hooks: {
            draw: [(plot) => {
              const x = plot.valToPos(now, "x", true);
              const { left, top, width, height } = plot.bbox;
              if (x < left || x > left + width) return;
              plot.ctx.save();
              plot.ctx.strokeStyle = colour("--text");
              plot.ctx.lineWidth = devicePixelRatio;
              plot.ctx.beginPath();
              plot.ctx.moveTo(x, top);
              plot.ctx.lineTo(x, top + height);
              plot.ctx.stroke();
              plot.ctx.restore();
            }],
            ready: [(plot) => plot.over.addEventListener("click", () => {
              const { left } = plot.cursor;
              if (typeof left === "number" && left >= 0) chosen(plot.posToVal(left, "x"));
            })],
          },
        }, [movie.time, ...panel.lines.map((line) => line.values)] as uPlot.AlignedData, place);
        plots.push(plot);
      });
      return figure;
    }));
  };
  make();
  let width = 0;
  new ResizeObserver(() => {
    if (box.clientWidth === width) return;
    width = box.clientWidth;
    for (const plot of plots) plot.setSize({ width: Math.max(200, plot.root.parentElement?.clientWidth ?? 200), height: 150 });
  }).observe(box);
  onTheme(box, make);
  return { element: box, at: (time) => { now = time; for (const plot of plots) plot.redraw(false, false); } };
}
