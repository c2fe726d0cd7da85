// The laboratory: a scenario to edit and run, its schedulers to compare.

import { copy, facts, figures, results, table } from "./charts";
import { announce, h, unique } from "./dom";
import { Editor } from "./editor";
import { Problem, type Progress, quick, runs } from "./engine";
import { type Lab, write } from "./link";
import { player } from "./player";
import { Task } from "./task";
import type { About, Checked, RunShown, Shown, Source, WhyAnswer } from "./types";
import { whyScenario } from "./why";
import { OWN, Written } from "./written";

/// Most schedulers are like one of these; all of them are a click away.
const USUAL = ["round-robin", "min-rtt", "blest", "ecf", "late", "redundant", "anabranch"];

/// The first bytes of pcap in both orders and resolutions, of pcapng, and of gzip.
const CAPTURES = /^(d4c3b2a1|a1b2c3d4|4d3cb2a1|a1b23c4d|0a0d0d0a|1f8b....)$/;

export class Laboratory {
  readonly element: HTMLElement;
  private readonly editor: Editor;
  private readonly written: Written;
  private readonly task = new Task();
  private readonly choice = h("select", { id: unique("shipped"), onchange: () => this.take({ name: this.choice.value }) });
  private readonly seed = h("input", { id: unique("seed"), type: "number", min: "0", step: "1", value: "1" });
  private readonly repeat = h("input", { id: unique("repeat"), type: "number", min: "1", max: "1000", step: "1", value: "20" });
  private readonly boxes: HTMLInputElement[];
  private readonly count = h("span");
  private name = "wlan-lte";
  private typed = 0;

  constructor(private readonly about: About) {
    this.editor = new Editor("Scenario", () => this.changed(), { schema: about.schema });
    this.written = new Written(about);
    this.choice.append(...about.scenarios.map(({ name }) => h("option", { value: name }, name)), h("option", { value: "", hidden: true }, "your own"));
    this.boxes = about.schedulers.filter(({ name }) => name !== "single").map(({ name }) => {
      const box = h("input", { type: "checkbox", value: name, onchange: () => this.counted() });
      box.checked = USUAL.includes(name);
      return box;
    });
    const all = (test: (name: string) => boolean) => () => {
      for (const box of this.boxes) box.checked = test(box.value);
      this.counted();
    };
    const button = (words: string, task: string, main = false) => h("button", { type: "button", className: main ? "main" : undefined, "data-task": task, onclick: () => void this.start(task) }, words);
    const file = h("input", { type: "file", accept: ".toml,text/plain", id: unique("open"), onchange: () => void this.open(file.files) });
    this.element = h("section", { className: "lab", "aria-labelledby": "lab-title" },
      h("h1", { id: "lab-title" }, "The laboratory"),
      h("p", { className: "lead" }, "A scenario says which paths there are, what is sent over them, and with which policies. Change it, run it, and see what each scheduler makes of it. The same scenario and seed give the same run, here and with the command."),
      h("div", { className: "bench" },
        this.editor.element,
        h("div", { className: "controls" },
          h("p", { className: "field" }, h("label", { for: this.choice.id }, "Begin with"), this.choice),
          h("div", { className: "pair" },
            h("p", { className: "field" }, h("label", { for: this.seed.id }, "Seed"), this.seed),
            h("p", { className: "field" }, h("label", { for: this.repeat.id }, "Repetitions"), this.repeat)),
          h("details", {}, h("summary", {}, "Schedulers to compare: ", this.count),
            h("p", { className: "tools" },
              h("button", { type: "button", onclick: all(() => true) }, "All"),
              h("button", { type: "button", onclick: all((name) => USUAL.includes(name)) }, "The usual"),
              h("button", { type: "button", onclick: all(() => false) }, "None")),
            h("div", { className: "schedulers" }, ...this.boxes.map((box) => {
              const { about: words, paper } = about.schedulers.find(({ name }) => name === box.value) ?? { about: "", paper: null };
              return h("label", { title: paper ? `${words} (${paper})` : words }, box, h("span", {}, box.value, h("small", { className: "quiet" }, ` ${words}`)));
            }))),
          h("p", { className: "tools wrap" }, button("Run once", "run", true), button("Compare", "compare"), button("Why so slow?", "why")),
          this.task.status,
          h("p", { className: "tools wrap" },
            h("button", { type: "button", onclick: () => void this.share() }, "Copy link"),
            h("button", { type: "button", onclick: () => this.save() }, "Save file"),
            h("label", { className: "button", for: file.id }, "Open file"), file))),
      // A script runs beside the simulator, in the page's own worker.
      about.schedulers.some(({ name }) => name === OWN) ? this.written.element : h("p", { className: "quiet" }, "A scheduler written in JavaScript runs in the page that brings its own simulator: ", h("code", {}, "web/build"), " makes it, and packages have it."),
      this.task.place);
    this.counted();
  }

  /// Takes a scenario over, and starts what the link asks for.
  take(lab: Lab): void {
    const shipped = this.about.scenarios.find(({ name }) => name === lab.name);
    const text = lab.text ?? shipped?.text;
    this.name = lab.name;
    if (text === undefined) return this.editor.mistake({ problem: `there is no scenario \`${lab.name}\``, help: `accepted: ${this.about.scenarios.map(({ name }) => name).join(", ")}` });
    this.editor.text = text;
    if (lab.seed !== undefined) this.seed.value = String(lab.seed);
    if (lab.repeat !== undefined) this.repeat.value = String(lab.repeat);
    if (lab.schedulers) for (const box of this.boxes) box.checked = lab.schedulers.includes(box.value);
    if (lab.own !== undefined) this.written.take(lab.own, true);
    this.counted();
    this.changed();
    // Nobody's program runs because a link was opened.
    if (lab.task && !(this.written.foreign && this.uses(lab.task))) void this.start(lab.task);
  }

  /// True if the task runs the scheduler that is written here.
  private uses(task: string): boolean {
    return /(["'])own\1/.test(this.editor.text) || (task === "compare" && this.boxes.some((box) => box.checked && box.value === OWN));
  }

  private get source(): Source { return { name: this.name, text: this.editor.text, sets: [] }; }

  private counted(): void {
    this.count.textContent = `${this.boxes.filter((box) => box.checked).length} of ${this.boxes.length}`;
  }

  private own(): boolean {
    return this.about.scenarios.find(({ name }) => name === this.name)?.text !== this.editor.text;
  }

  private changed(): void {
    this.choice.value = this.own() ? "" : this.name;
    const typed = ++this.typed;
    setTimeout(() => {
      if (typed === this.typed) void this.check(typed);
    }, 200);
  }

  private async check(typed: number): Promise<void> {
    try {
      const it = await quick.ask<Checked>({ do: "check", source: this.source });
      if (typed !== this.typed) return;
      const notes = it.notes.length > 0 ? ` Note: ${it.notes.join("; ")}.` : "";
      this.editor.mistake(null, `In order: paths ${it.paths.join(", ")}; scheduler ${it.scheduler}; ranked by ${it.measure}; ${it.random ? "draws from the seed" : "no chance in it: each seed gives the same"}.${notes}`);
    } catch (error) {
      if (typed === this.typed && error instanceof Problem) this.editor.mistake(error.trouble);
    }
  }

  private numbers(): { seed: number; repeat: number } {
    const whole = (input: HTMLInputElement, least: number) => Math.max(least, Math.floor(Number(input.value) || 0));
    return { seed: whole(this.seed, 0), repeat: Math.min(1000, whole(this.repeat, 1)) };
  }

  private async start(task: string): Promise<void> {
    const { seed, repeat } = this.numbers();
    const source = this.source;
    const script = this.uses(task) ? this.written.text : undefined;
    if (script !== undefined) this.written.allow();
    const ask = async <T>(request: object, progress: Progress): Promise<T> => {
      try {
        const answer = await runs.ask<T>(request, { progress, script });
        if (script !== undefined) this.written.mistake(script, null);
        return answer;
      } catch (error) {
        const own = error instanceof Problem && (error.trouble.text ?? error.trouble.problem).includes(`\`${OWN}\``);
        if (own && script !== undefined) this.written.mistake(script, error.trouble);
        throw error;
      }
    };
    const slow = script === undefined ? undefined : "no run has ended for five seconds. If the scheduler own does not return, Stop ends it.";
    const noted = (element: HTMLElement) => {
      if (script !== undefined) element.append(h("p", { className: "note" }, "The command does not know the scheduler own: it is in this page alone. “Copy link” keeps it."));
      return element;
    };
    if (task === "run") {
      return this.task.run("The run", async (progress) => {
        const shown = await ask<RunShown>({ do: "run", source, seed }, progress);
        return noted(this.shownRun(shown));
      }, slow);
    }
    if (task === "compare") {
      const schedulers = this.boxes.filter((box) => box.checked).map((box) => box.value);
      return this.task.run("The comparison", async (progress) => {
        if (schedulers.length === 0) throw new Problem({ problem: "no scheduler is chosen", help: "choose some under “Schedulers to compare”" });
        return noted(results(await ask<Shown>({ do: "compare", source, schedulers, seed, repeat }, progress)));
      }, slow);
    }
    if (task === "why") {
      return this.task.run("Why it took so long", async (progress) => {
        const { answer } = await ask<{ answer: WhyAnswer }>({ do: "why", source, seed, repeat: Math.min(repeat, 10) }, progress);
        return noted(whyScenario(this.about, answer));
      }, slow);
    }
  }

  private shownRun(shown: RunShown): HTMLElement {
    // Curves of the same things are in the player.
    const own = (id: string) => !["cwnd", "queue"].includes(id);
    return h("div", {},
      ...shown.warnings.map((text) => h("p", { className: "warning" }, text)),
      player(shown.movie, this.about.schedulers, (scheduler, at) => this.switchTo(scheduler, at)),
      figures(shown, own), ...shown.tables.map(table), facts(shown), h("p", { className: "quiet digest" }, `Digest of all events: ${shown.digest}`));
  }

  /// Adds a change of the scheduler to the scenario. Until then the run is the same, since its seed is.
  private switchTo(scheduler: string, at: number): void {
    this.editor.text = `${this.editor.text.trimEnd()}\n\n[[change]]\nat = "${Math.round(at * 1e6)}us"\nscheduler = "${scheduler}"\n`;
    this.changed();
    void this.start("run");
  }

  private async share(): Promise<void> {
    const { seed, repeat } = this.numbers();
    const chosen = this.boxes.filter((box) => box.checked).map((box) => box.value);
    const usual = chosen.length === USUAL.length && chosen.every((name) => USUAL.includes(name));
    const fragment = await write({ name: this.name, seed, repeat, ...(this.own() ? { text: this.editor.text } : {}), ...(usual ? {} : { schedulers: chosen }), ...(this.uses("compare") ? { own: this.written.text } : {}) });
    history.replaceState(null, "", fragment);
    const done = await copy(location.href);
    announce(done ? "The link is copied" : "The link is in the address bar");
  }

  private save(): void {
    const link = h("a", { href: URL.createObjectURL(new Blob([this.editor.text], { type: "text/plain" })), download: `${this.name}.toml` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  private async open(files: FileList | null): Promise<void> {
    const file = files?.[0];
    if (!file) return;
    const begin = [...new Uint8Array(await file.slice(0, 4).arrayBuffer())].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    if (CAPTURES.test(begin)) return this.editor.mistake({ problem: `${file.name} is a capture, not a scenario`, help: "choose it under “Capture” at the head of this page" });
    this.take({ name: file.name.replace(/\.toml$/, ""), text: await file.text() });
  }
}

