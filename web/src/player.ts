// A run, packet by packet: paths, windows, queues and the receiver's buffer move in time.

import { announce, bytes, h, number, unique } from "./dom";
import { curves, inFlight, typical } from "./series";
import { colour, ofPath, onTheme } from "./theme";
import type { Movie, Policy } from "./types";

const SPEEDS: [string, number][] = [["1/500", 1 / 500], ["1/100", 1 / 100], ["1/20", 1 / 20], ["1/5", 1 / 5], ["real time", 1], ["5 ×", 5]];
const LANE = 74;
const STRIP = 66;

/// Ranges of bytes, in order, that have arrived up to a time.
class Received {
  private next = 0;
  private time = -1;
  private ranges: [number, number][] = [];
  private readonly order: number[];

  constructor(private readonly movie: Movie) {
    const { arrived, kind } = movie.packets;
    this.order = arrived.flatMap((at, n) => (at !== null && kind[n] !== 3 ? [n] : [])).sort((a, b) => (arrived[a] ?? 0) - (arrived[b] ?? 0));
  }

  at(time: number): [number, number][] {
    if (time < this.time) {
      this.next = 0;
      this.ranges = [];
    }
    this.time = time;
    const { arrived, from, length } = this.movie.packets;
    for (; this.next < this.order.length; this.next++) {
      const n = this.order[this.next] ?? 0;
      if ((arrived[n] ?? 0) > time) break;
      this.add(from[n] ?? 0, (from[n] ?? 0) + (length[n] ?? 0));
    }
    return this.ranges;
  }

  private add(from: number, to: number): void {
    let at = this.ranges.findIndex(([, end]) => end >= from);
    if (at < 0) at = this.ranges.length;
    let last = at;
    while (last < this.ranges.length && (this.ranges[last]?.[0] ?? 0) <= to) {
      from = Math.min(from, this.ranges[last]?.[0] ?? from);
      to = Math.max(to, this.ranges[last]?.[1] ?? to);
      last++;
    }
    this.ranges.splice(at, last - at, [from, to]);
  }
}

/// `again`: runs the same scenario and seed with another scheduler from a time on.
export function player(movie: Movie, schedulers: Policy[], again?: (scheduler: string, at: number) => void): HTMLElement {
  const { packets, paths } = movie;
  let now = 0;
  let playing = false;
  let last = 0;
  const end = movie.end;
  const events = [...new Set([...packets.sent, ...packets.arrived.filter((it): it is number => it !== null)])].sort((a, b) => a - b);
  const received = new Received(movie);
  const flight = inFlight(movie);
  const total = packets.from.reduce((most, from, n) => Math.max(most, from + (packets.length[n] ?? 0)), 1);
  const mostCwnd = Math.max(1, ...movie.cwnd.flat());
  const mostQueue = Math.max(1, ...movie.queued.flat());
  const longest = Math.max(0.001, ...packets.sent.map((sent, n) => {
    const at = packets.arrived[n];
    return typeof at === "number" ? at - sent : typical(movie, packets.path[n] ?? 0);
  }));

  const canvas = h("canvas", { role: "img", "aria-label": "Packets between sender and receiver; the table below says the same in numbers" });
  const state = h("tbody");
  const clock = h("output", { className: "clock" });
  const slider = h("input", {
    type: "range", min: "0", max: "1000", step: "1", value: "0", "aria-label": "Time", oninput: () => go((Number(slider.value) / 1000) * end),
  });
  const speed = h("select", { id: unique("speed") }, ...SPEEDS.map(([name, value]) => h("option", { value: String(value) }, name)));
  speed.selectedIndex = end < 3 ? 2 : end < 20 ? 3 : 4;
  const play = h("button", { type: "button", className: "main", onclick: () => toggle() }, "Play");
  const step = (by: number) => h("button", { type: "button", title: by > 0 ? "The next packet that leaves or arrives" : "The one before", onclick: () => hop(by) }, by > 0 ? "Step ▸" : "◂ Back");
  const lines = curves(movie, (at) => go(at));

  const sample = () => {
    let [low, high] = [0, movie.time.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((movie.time[middle] ?? 0) <= now) low = middle;
      else high = middle - 1;
    }
    return low;
  };

  function hop(by: number): void {
    playing = false;
    play.textContent = "Play";
    const next = by > 0 ? events.find((at) => at > now + 1e-9) : events.findLast((at) => at < now - 1e-9);
    go(next ?? (by > 0 ? end : 0));
  }

  function toggle(): void {
    playing = !playing;
    play.textContent = playing ? "Pause" : "Play";
    if (!playing) return announce(clock.textContent ?? "");
    if (now >= end) now = 0;
    last = performance.now();
    requestAnimationFrame(frame);
  }

  function frame(at: number): void {
    if (!playing || !canvas.isConnected) return;
    now = Math.min(end, now + ((at - last) / 1000) * Number(speed.value));
    last = at;
    if (now >= end) {
      playing = false;
      play.textContent = "Play";
    }
    show();
    if (playing) requestAnimationFrame(frame);
  }

  function go(at: number): void {
    now = Math.max(0, Math.min(end, at));
    show();
  }

  function show(): void {
    slider.value = String(Math.round((now / end) * 1000));
    clock.textContent = `${now.toFixed(4)} s of ${end.toFixed(3)} s`;
    slider.setAttribute("aria-valuetext", clock.textContent);
    const n = sample();
    const of = (column: number[][], path: number) => column[path]?.[n] ?? 0;
    state.replaceChildren(...paths.map((name, path) => h("tr", {},
      h("th", { scope: "row" }, h("span", { className: "key", style: `background: ${ofPath(path)}` }), name),
      ...[bytes(of(movie.cwnd, path)), bytes(of(flight, path)), String(of(movie.queued, path)), bytes(of(movie.received, path))].map((text) => h("td", { className: "number" }, text)))));
    lines.at(now);
    draw(n);
  }

  function draw(n: number): void {
    const ratio = devicePixelRatio || 1;
    const width = canvas.clientWidth || 600;
    const height = paths.length * LANE + STRIP;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
    }
    const it = canvas.getContext("2d");
    if (!it) return;
    it.setTransform(ratio, 0, 0, ratio, 0, 0);
    it.clearRect(0, 0, width, height);
    const [text, quiet, line, bad] = [colour("--text"), colour("--quiet"), colour("--line"), colour("--bad")];
    it.font = '12px system-ui, "DejaVu Sans", sans-serif';
    const left = Math.min(112, width * 0.28);
    const right = width - 14;
    paths.forEach((name, path) => {
      const top = path * LANE;
      const data = top + 32;
      const back = top + 54;
      it.fillStyle = text;
      it.fillText(name, 0, top + 14, left - 8);
      // The window, and how much of it is on its way.
      const gauge = (value: number, most: number, y: number, fill: boolean) => {
        const size = (left - 14) * Math.min(1, value / most);
        it.strokeStyle = it.fillStyle = ofPath(path);
        it.globalAlpha = fill ? 0.75 : 1;
        if (fill) it.fillRect(0, y, size, 9);
        else it.strokeRect(0.5, y + 0.5, Math.max(1, size), 8);
        it.globalAlpha = 1;
      };
      gauge(flight[path]?.[n] ?? 0, mostCwnd, top + 22, true);
      gauge(movie.cwnd[path]?.[n] ?? 0, mostCwnd, top + 22, false);
      // The queue, as a stack of packets in front of the link.
      const queued = movie.queued[path]?.[n] ?? 0;
      const stack = Math.min(30, (30 * queued) / mostQueue);
      it.fillStyle = ofPath(path);
      it.globalAlpha = 0.35;
      it.fillRect(left - 8, data - stack / 2, 6, stack);
      it.globalAlpha = 1;
      it.fillStyle = quiet;
      it.fillText(queued > 0 ? `${queued} queued` : "", 0, top + 50, left - 8);
      it.strokeStyle = line;
      for (const y of [data, back]) {
        it.beginPath();
        it.moveTo(left, y + 0.5);
        it.lineTo(right, y + 0.5);
        it.stroke();
      }
    });
    // Packets that are on their way.
    let first = lower(packets.sent, now - longest);
    for (; first < packets.sent.length && (packets.sent[first] ?? 0) <= now; first++) {
      const path = packets.path[first] ?? 0;
      const [sent, arrived, kind] = [packets.sent[first] ?? 0, packets.arrived[first], packets.kind[first]];
      const time = typeof arrived === "number" ? arrived - sent : typical(movie, path);
      const part = (now - sent) / time;
      if (part > 1) continue;
      const lost = typeof arrived !== "number";
      const y = path * LANE + (kind === 3 ? 54 : 32);
      const x = kind === 3 ? right - part * (right - left) : left + part * (right - left);
      it.globalAlpha = lost && part > 0.5 ? Math.max(0, 2 - 2 * part) : 1;
      it.fillStyle = it.strokeStyle = kind === 3 ? quiet : lost && part > 0.5 ? bad : ofPath(path);
      if (lost && part > 0.5) {
        it.beginPath();
        it.moveTo(x - 4, y - 4); it.lineTo(x + 4, y + 4);
        it.moveTo(x + 4, y - 4); it.lineTo(x - 4, y + 4);
        it.stroke();
      } else if (kind === 3) {
        it.fillRect(x - 1, y - 3, 2, 6);
      } else {
        it.fillRect(x - 3, y - 7, 6, 14);
        if (kind !== 0) {
          it.strokeStyle = text;
          it.lineWidth = 1.5;
          if (kind === 2) it.setLineDash([2, 2]);
          it.strokeRect(x - 5, y - 9, 10, 18);
          it.setLineDash([]);
          it.lineWidth = 1;
        }
      }
      it.globalAlpha = 1;
    }
    // The stream at the receiver: in order, and waiting behind a gap.
    const top = paths.length * LANE + 4;
    const ranges = received.at(now);
    const scale = (byte: number) => (byte / total) * (width - 2) + 1;
    it.fillStyle = text;
    const inOrder = ranges[0]?.[0] === 0 ? ranges[0][1] : 0;
    const waiting = ranges.reduce((sum, [from, to]) => sum + (from === 0 ? 0 : to - from), 0);
    it.fillText(`received in order: ${bytes(inOrder)} of ${bytes(total)}${waiting > 0 ? `; waiting behind a gap: ${bytes(waiting)}` : ""}`, 0, top + 12, width);
    it.strokeStyle = line;
    it.strokeRect(0.5, top + 20.5, width - 1, 22);
    for (const [from, to] of ranges) {
      it.fillStyle = from === 0 ? colour("--good") : colour("--part");
      it.fillRect(scale(from), top + 22, Math.max(1, scale(to) - scale(from)), 19);
    }
  }

  const from = h("select", { id: unique("from") }, ...schedulers.filter(({ name }) => name !== "single").map(({ name, about }) => h("option", { value: name, title: about }, name)));
  const element = h("section", {
    className: "player", "aria-label": "The run in time", tabindex: "-1",
    onkeydown: (event: KeyboardEvent) => {
      if (event.target instanceof HTMLSelectElement || event.target instanceof HTMLInputElement || event.target instanceof HTMLButtonElement) return;
      const act = { " ": toggle, ArrowRight: () => hop(1), ArrowLeft: () => hop(-1) }[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    },
  },
  h("h3", {}, "The run in time"),
  h("div", { className: "tools wrap" }, play, step(-1), step(1), h("label", { for: speed.id }, "Speed"), speed, clock),
  slider, canvas,
  h("p", { className: "note" }, "Left the sender, right the receiver. Blocks are data, framed where they were sent again (dashed: on another path); crosses were lost; ticks below are ACKs. Beside each path: its congestion window (frame) and what of it is on its way (filled)."),
  h("div", { className: "wide", tabindex: "0", role: "region", "aria-label": "State of the paths" }, h("table", {}, h("thead", {}, h("tr", {}, ...["path", "window", "in flight", "queued packets", "delivered"].map((head, n) => h("th", { scope: "col", className: n > 0 ? "number" : undefined }, head)))), state)),
  movie.packets_in_run > packets.sent.length ? h("p", { className: "note" }, `The first ${packets.sent.length.toLocaleString("en")} of ${movie.packets_in_run.toLocaleString("en")} packets are shown; curves are of all.`) : null,
  again ? h("div", { className: "tools wrap" }, h("label", { for: from.id }, "From here on, with the scheduler"), from,
    h("button", { type: "button", onclick: () => again(from.value, now) }, "Run again")) : null,
  lines.element);
  onTheme(element, show);
  new ResizeObserver(() => draw(sample())).observe(canvas);
  requestAnimationFrame(show);
  return element;
}

/// Index of the first number that is at least `least`.
function lower(sorted: number[], least: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

export const shortly = (seconds: number) => `${number(seconds, 4)}s`;
