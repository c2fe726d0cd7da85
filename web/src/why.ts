// What the time of a transfer went to: sentence, bars over time, tables.

import { table } from "./charts";
import { bytes, h, number } from "./dom";
import type { About, Bars, CaptureAnswer, Interval, Measure, Share, WhyAnswer } from "./types";

/// Columns of a bar.
const COLUMNS = 240;
/// Shares below this are left out of the table.
const SMALL = 0.005;

/// For each column the limit that took most of its time.
function columns({ from_ns, time_ns }: Bars, intervals: Interval[]): string[] {
  const found: string[] = [];
  let rest = 0;
  for (let n = 0; n < COLUMNS; n++) {
    const [from, to] = [from_ns + (time_ns * n) / COLUMNS, from_ns + (time_ns * (n + 1)) / COLUMNS];
    while (rest < intervals.length && (intervals[rest]?.to_ns ?? 0) <= from) rest++;
    const times = new Map<string, number>();
    for (let k = rest; k < intervals.length && (intervals[k]?.from_ns ?? 0) < to; k++) {
      const it = intervals[k];
      if (it) times.set(it.limit, (times.get(it.limit) ?? 0) + Math.min(to, it.to_ns) - Math.max(from, it.from_ns));
    }
    const [most] = [...times].sort(([, a], [, b]) => b - a);
    found.push(most?.[0] ?? "");
  }
  return found;
}

function bar(about: About, bars: Bars, name: string, intervals: Interval[], used: Set<string>): HTMLElement {
  const parts: { limit: string; length: number }[] = [];
  for (const limit of columns(bars, intervals)) {
    const end = parts.at(-1);
    if (end?.limit === limit) end.length++;
    else parts.push({ limit, length: 1 });
    used.add(limit);
  }
  const letter = (limit: string) => about.limits.find((it) => it.name === limit)?.letter ?? "";
  const said = parts.map(({ limit, length }) => `${limit} ${Math.round((100 * length) / COLUMNS)} %`).slice(0, 12).join(", ");
  return h("div", { className: "lane" }, h("span", { className: "name" }, name),
    h("div", { className: "bands", role: "img", "aria-label": `${name}, in the order of time: ${said}` },
      ...parts.map(({ limit, length }) => h("span", {
        className: `limit limit-${limit}`, style: `flex-grow: ${length}`, title: limit,
      }, length >= COLUMNS / 40 ? letter(limit) : ""))));
}

/// Bars of a connection and its paths, with their legend.
export function bands(about: About, bars: Bars, shares: Share[]): HTMLElement {
  const used = new Set<string>();
  const rows = [{ path: "connection", intervals: bars.intervals }, ...bars.paths];
  const drawn = rows.map(({ path, intervals }) => bar(about, bars, path, intervals, used));
  for (const share of shares) if (share.share >= SMALL) used.add(share.limit);
  const legend = about.limits.filter((it) => used.has(it.name)).flatMap((it) => [
    h("dt", {}, h("span", { className: `limit swatch limit-${it.name}` }, it.letter), ` ${it.name}`), h("dd", {}, it.meaning),
  ]);
  return h("div", { className: "gantt" }, ...drawn,
    h("div", { className: "lane ends" }, h("span", { className: "name" }), h("span", {}, "0"), h("span", {}, `${number(bars.time_ns / 1e9, 4)} s`)),
    h("dl", { className: "limits" }, ...legend));
}

function shares(all: Share[], repeat: number): HTMLElement {
  const rows = all.filter((it) => it.share >= SMALL);
  return table({
    caption: "Time by limit", columns: [["limit", false], ["path", false], ["time [s]", true], ["share", true]].map(([head, right]) => ({ head: String(head), right: Boolean(right) })),
    rows: rows.map((it) => [it.limit, it.path ?? "", number(it.time_ns / 1e9 / Math.max(1, repeat)), `${number(100 * it.share, 2)} %`]),
    notes: [],
  });
}

export function whyScenario(about: About, answer: WhyAnswer): HTMLElement {
  const longest = answer.transfers.reduce<WhyAnswer["transfers"][number] | undefined>((most, it) => (!most || it.time_ns > most.time_ns ? it : most), undefined);
  const [scale, unit] = answer.unit === "s" ? [1, "s"] : [1e6, "Mbit/s"];
  const said = (it: Measure | null, sign: boolean) => {
    if (!it) return "not finished";
    const mean = number(it.mean / scale);
    return `${sign && it.mean >= 0 ? "+" : ""}${mean}${it.half === null ? "" : ` ± ${number(it.half / scale, 2)}`}`;
  };
  const gain = (it: WhyAnswer["counterfactuals"][number]) => (it.difference ? it.difference.mean * (answer.unit === "s" ? 1 : -1) : Number.POSITIVE_INFINITY);
  const tried = [...answer.counterfactuals].sort((a, b) => gain(a) - gain(b));
  return h("div", {},
    h("p", { className: "sentence" }, answer.sentence),
    longest ? h("h3", {}, answer.transfers.length > 1 ? `${longest.label}, the longest of ${answer.transfers.length} transfers, seed ${answer.seed}` : `The transfer, seed ${answer.seed}`) : null,
    longest ? bands(about, longest, answer.shares) : null,
    shares(answer.shares, answer.repeat),
    table({
      caption: "With one thing changed",
      columns: [{ head: "with", right: false }, { head: `${answer.measure.replaceAll("-", " ")} [${unit}]`, right: true }, { head: `difference [${unit}]`, right: true }],
      rows: [["as it is", said(answer.value, false), ""], ...tried.map((it) => [it.what, `${it.unfinished_runs > 0 ? "≥ " : ""}${said(it.value, false)}`, said(it.difference, true)])],
      notes: [`Means over ${answer.repeat} repetition${answer.repeat === 1 ? "" : "s"}; differences taken seed by seed.`],
    }),
    answer.left_out.length > 0 ? h("details", {}, h("summary", {}, "Not tried"), h("ul", {}, ...answer.left_out.map((it) => h("li", {}, `${it.what}: ${it.because}`)))) : null);
}

/// `choose`: asks again about the connection of that number.
export function whyCapture(about: About, answer: CaptureAnswer, choose: (connection: number) => void): HTMLElement {
  const it = answer.connection;
  const troubles = answer.files.flatMap((file) => [...(file.error ? [file.error] : []), ...file.notes].map((note) => h("li", {}, `${file.name}: ${note}`)));
  return h("div", {},
    h("p", { className: "sentence" }, answer.sentence),
    it ? h("p", { className: "quiet" }, `Connection ${it.number}: ${it.multipath ? "MPTCP" : "plain TCP"}, ${it.endpoints[0]} to ${it.endpoints[1]}, captured ${it.captured}`) : null,
    ...(it?.directions ?? []).map((direction) => h("section", {},
      h("h3", {}, `Data from the ${it?.sides[direction.from] ?? "sender"}: ${bytes(direction.bytes)}, confidence ${direction.confidence}`),
      bands(about, direction, direction.shares), shares(direction.shares, 1))),
    it && it.unknown.length > 0 ? h("details", {}, h("summary", {}, "What this capture does not tell"), h("ul", {}, ...it.unknown.map((line) => h("li", {}, line)))) : null,
    answer.others.length > 0
      ? h("div", {}, h("h3", {}, `${answer.other_connections} other connection${answer.other_connections === 1 ? "" : "s"}`),
        h("p", { className: "tools" }, ...answer.others.map((other) => h("button", { type: "button", onclick: () => choose(other.number) },
          `${other.number}: ${other.multipath ? "MPTCP" : "TCP"}, ${bytes(other.bytes[0] + other.bytes[1])}`))))
      : null,
    troubles.length > 0 ? h("ul", { className: "note" }, ...troubles) : null);
}
