// The papers' figures: what each is about, a run of it in the page, and its systems to take apart.

import { copy, facts, Figures, table } from "./charts";
import { announce, h, unique } from "./dom";
import { quick, runs } from "./engine";
import { type Chosen, write, writeStudy } from "./link";
import { Task, troubleOf, wrong } from "./task";
import type { Judged, Outline, Paper, Shown, StudyShown } from "./types";

let known: Promise<Paper[]> | undefined;
/// The papers, read when they are first asked for.
export const papers = () => (known ??= quick.ask<Paper[]>({ do: "papers" }));

const address = (name: string) => `#paper/${name}`;
/// Repetitions to begin with: enough for an interval that tells something, and soon there.
const FEW = 3;
const MOST = 1000;

export function shelf(all: Paper[]): HTMLElement {
  const count = all.reduce((sum, { studies }) => sum + studies.length, 0);
  return h("section", { "aria-labelledby": "papers-title" },
    h("h1", { id: "papers-title" }, "Five papers, run again"),
    h("p", { className: "lead" }, `${count} figures and tables on which the schedulers and controls of Multipath TCP rest. Each is run here, in this browser: what the paper states, what comes out, and a verdict on each statement. Its assumptions can be changed.`),
    ...all.flatMap(({ name, citation, belief, studies }) => [
      h("h2", {}, name),
      h("p", { className: "citation" }, citation),
      h("details", {}, h("summary", {}, "What to believe of it, after full runs"), h("p", { className: "about" }, belief)),
      h("ul", { className: "cards figures-of" }, ...studies.map((study) => h("li", {},
        h("a", { href: address(study.name) }, h("b", {}, study.figure), h("span", {}, study.title))))),
    ]));
}

export class StudyView {
  readonly element: HTMLElement;
  private readonly task = new Task("What came out");
  private readonly points = h("select", { id: unique("points"), onchange: () => this.resized() });
  private readonly repeat = h("input", { id: unique("repeat"), type: "number", min: "1", max: String(MOST), step: "1", oninput: () => this.count() });
  private readonly sets = h("textarea", { id: unique("sets"), rows: "2", spellcheck: "false", autocapitalize: "off", "aria-describedby": "sets-about" });
  private readonly size = h("p", { className: "quiet", "aria-live": "polite" });

  constructor(all: Paper[], private readonly outline: Outline) {
    const { name, title, figure, about, axes, alternatives, assumptions, statements } = outline;
    const paper = all.find(({ studies }) => studies.some((it) => it.name === name));
    const siblings = paper?.studies ?? [];
    const place = siblings.findIndex((it) => it.name === name);
    const [before, after] = [siblings[place - 1], siblings[place + 1]];
    const some = this.points, few = axes.some(({ points, quick }) => quick.length < points.length);
    if (few) some.append(h("option", { value: "some" }, `some: ${axes.map(({ points, quick }) => `${quick.length} of ${points.length}`).join(" × ")}`));
    some.append(h("option", { value: "all" }, axes.some(({ points }) => points.length > 1) ? `all: ${axes.map(({ points }) => points.length).join(" × ")}` : "the only one"));
    const other = h("select", { id: unique("alternative"), onchange: () => {
      const chosen = alternatives.find(([words]) => words === other.value);
      if (chosen) this.assume(chosen[1]);
      other.value = "";
    } }, h("option", { value: "" }, "choose one to add it"), ...alternatives.map(([words]) => h("option", { value: words }, words)));
    this.element = h("section", { className: "paper-figure", "aria-labelledby": "study-title" },
      h("p", { className: "kicker" }, h("a", { href: "#papers" }, "Papers"), ` ▸ ${paper?.name ?? ""}, ${figure}`),
      h("h1", { id: "study-title" }, title),
      h("p", { className: "citation" }, paper?.citation),
      h("p", { className: "about" }, about),
      h("details", {}, h("summary", {}, `What the paper states (${statements.length})`),
        h("ul", {}, ...statements.map(([text, source]) => h("li", {}, text, " ", h("span", { className: "source" }, source))))),
      h("details", {}, h("summary", {}, `What the paper leaves open, and what is assumed (${assumptions.length})`),
        h("table", { className: "plain" }, heads(["about", "assumed", "because"]),
          h("tbody", {}, ...assumptions.map((it) => h("tr", {}, h("td", {}, it.about), h("td", { "data-head": "assumed" }, it.value), h("td", { "data-head": "because" }, it.reason)))))),
      h("div", { className: "changes", role: "group", "aria-label": "What to run" },
        h("div", {},
          h("p", { className: "field" }, h("label", { for: some.id }, "Points"), some),
          h("p", { className: "field" }, h("label", { for: this.repeat.id }, "Repetitions"), this.repeat)),
        h("div", {},
          alternatives.length > 0 ? h("p", { className: "field" }, h("label", { for: other.id }, "Another assumption"), other) : null,
          h("p", { className: "field" }, h("label", { for: this.sets.id }, "Overrides, one a line"), this.sets,
            h("small", { className: "quiet", id: "sets-about" }, "As --set takes them, for instance host.congestion=cubic. They lie over all systems and points.")))),
      this.size,
      h("p", { className: "tools wrap" },
        h("button", { type: "button", className: "main", onclick: () => void this.run() }, "Run it"),
        h("button", { type: "button", onclick: () => void this.share() }, "Copy link")),
      this.task.status,
      this.task.place,
      this.apart(),
      h("nav", { className: "tools wrap", "aria-label": "Other figures of the paper" },
        before ? h("a", { href: address(before.name) }, `◂ ${before.figure}`) : null,
        after ? h("a", { href: address(after.name) }, `${after.figure} ▸`) : null));
    this.take({ sets: [] });
  }

  /// Takes over what a link says.
  take({ full, repeat, sets, run }: Chosen): void {
    if (full) this.points.value = "all";
    this.resized();
    if (repeat !== undefined) this.repeat.value = String(Math.min(MOST, repeat));
    this.sets.value = sets.join("\n");
    this.count();
    if (run) void this.run();
  }

  /// Adds the overrides of an alternative.
  private assume(sets: string[]): void {
    const [before, known] = [this.sets.value.trimEnd(), this.overrides];
    const added = sets.filter((set) => !known.includes(set));
    this.sets.value = [before, ...added].filter(Boolean).join("\n");
    this.sets.rows = Math.max(2, this.sets.value.split("\n").length);
    announce(`${added.length} override${added.length === 1 ? " is" : "s are"} added`);
  }

  private get overrides(): string[] {
    return this.sets.value.split("\n").map((line) => line.trim()).filter(Boolean);
  }

  /// All points: `--quick` is left out.
  private get full(): boolean {
    return this.points.value === "all";
  }

  private get repetitions(): number {
    return Math.min(MOST, Math.max(1, Math.floor(Number(this.repeat.value) || 1)));
  }

  /// Repetitions go with the points: few, or those of the study.
  private resized(): void {
    this.repeat.value = String(this.full && this.points.length > 1 ? this.outline.repeat : Math.min(FEW, this.outline.quick_repeat));
    this.count();
  }

  private count(): void {
    const { axes, systems, repeat, quick_repeat: some } = this.outline;
    const points = axes.reduce((all, axis) => all * (this.full ? axis.points.length : axis.quick.length), 1);
    const all = points * systems.length * this.repetitions;
    const are = (count: number, word: string) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
    this.size.textContent = `${are(all, "run")}: ${are(systems.length, "system")} at ${are(points, "point")}, ${are(this.repetitions, "repetition")} each. The study itself has ${repeat}, its quick form ${some}.`;
  }

  private run(): Promise<void> {
    // Without `--quick` where that leaves nothing out but repetitions, which are given.
    const study = { name: this.outline.name, quick: !this.full, repeat: this.repetitions, sets: this.overrides };
    let figures: Figures | undefined;
    const made = h("p", { className: "quiet" });
    let rested = 0;
    const growing = (shown: Shown, runs: number, all: number) => {
      const begun = performance.now();
      made.textContent = `From ${runs.toLocaleString("en")} of ${all.toLocaleString("en")} runs. Verdicts come with the last one.`;
      if (figures) figures.renew(shown);
      else {
        figures = new Figures(shown);
        this.task.place.replaceChildren(h("h2", {}, "What has come out so far"), made, figures.element);
      }
      // Drawing must leave time for everything else.
      rested = performance.now() + 4 * (performance.now() - begun);
    };
    return this.task.run("The study", async (progress) => {
      const early = (read: () => StudyShown, runs: number, all: number) => { if (performance.now() >= rested) growing(read(), runs, all); };
      const shown = await runs.ask<StudyShown>({ do: "study", study }, { progress, early });
      if (figures) figures.renew(shown);
      else figures = new Figures(shown);
      return outcome(shown, figures);
    }, "no run has ended for five seconds: those of this figure are long.");
  }

  private async share(): Promise<void> {
    history.replaceState(null, "", writeStudy(this.outline.name, { full: this.full, repeat: this.repetitions, sets: this.overrides }));
    announce((await copy(location.href)) ? "The link is copied" : "The link is in the address bar");
  }

  /// A system at a point, for the laboratory.
  private apart(): HTMLElement {
    const { name, systems, axes } = this.outline;
    const choice = (label: string, all: string[]) => {
      const select = h("select", { id: unique("of") }, ...all.map((text, n) => h("option", { value: String(n) }, text)));
      return { select, field: h("p", { className: "field" }, h("label", { for: select.id }, label), select) };
    };
    const system = choice("System", systems.map((it) => it.name));
    const point = axes.map(({ label, points }) => choice(label, points));
    const trouble = h("div");
    const open = async () => {
      const asked = { do: "scenario-at", name, sets: this.overrides, system: Number(system.select.value), point: point.map(({ select }) => Number(select.value)) };
      try {
        location.hash = await write({ name: name.replace("/", "-"), text: await quick.ask<string>(asked) });
      } catch (error) {
        trouble.replaceChildren(wrong(troubleOf(error)));
      }
    };
    return h("details", { className: "apart" }, h("summary", {}, "One of its scenarios in the laboratory"),
      h("p", {}, "A system at a point, with all its settings and the overrides above, to be changed, run packet by packet, and compared with other schedulers."),
      h("div", { className: "changes" }, system.field, ...point.map(({ field }) => field)),
      h("p", { className: "tools" }, h("button", { type: "button", onclick: () => void open() }, "Open it in the laboratory")),
      trouble);
  }
}

const heads = (names: string[]) => h("thead", {}, h("tr", {}, ...names.map((name) => h("th", { scope: "col" }, name))));

/// Everything that a study came to, in the order of a report.
function outcome(shown: StudyShown, figures: Figures): HTMLElement {
  return h("div", {},
    ...shown.warnings.map((text) => h("p", { className: "warning" }, text)),
    // First, as while they grew: they stay where they are.
    figures.element,
    verdicts(shown.statements),
    shown.tables.length > 0 ? h("details", { className: "more" }, h("summary", {}, "The numbers as tables"), ...shown.tables.map(table)) : null,
    h("details", {}, h("summary", {}, "Systems, with their policies"), ...shown.systems.map(({ name, set, policies }) => h("div", {},
      h("h3", {}, name),
      set.length > 0 ? h("p", {}, "sets ", ...set.flatMap((it, n) => [n > 0 ? ", " : "", h("code", {}, it)])) : null,
      h("dl", {}, ...policies.flatMap(([seam, policy]) => [h("dt", {}, seam), h("dd", {}, policy)]))))),
    facts(shown));
}

function verdicts(statements: Judged[]): HTMLElement {
  const verdict = (it: Judged["verdict"]) => h("span", { className: `verdict ${it.class}` }, h("span", { className: "symbol", "aria-hidden": "true" }, it.symbol), ` ${it.word}`);
  const row = (it: Judged) => h("tr", {},
    h("td", {}, h("p", {}, it.text),
      h("p", { className: "source" }, it.source, it.own ? " (a sentence of ours, not of the paper)" : "", it.sentence ? `; part of “${it.sentence}”` : ""),
      it.details.length > 0 || it.cause ? h("details", {}, h("summary", {}, it.cause ? "how it was decided, and why" : "how it was decided"),
        it.cause ? h("p", {}, h("b", {}, "Cause, as we believe: "), it.cause) : null,
        it.details.length > 0 ? h("ul", {}, ...it.details.map((text) => h("li", {}, text))) : null) : null),
    h("td", { "data-head": "its claim" }, it.claim), h("td", { "data-head": "ours" }, it.ours), h("td", { "data-head": "verdict" }, verdict(it.verdict)));
  return h("div", {}, h("h3", {}, "Statements"),
    h("table", { className: "statements" }, heads(["what the paper states", "its claim", "ours, with 95 % interval", "verdict"]), h("tbody", {}, ...statements.map(row))));
}
