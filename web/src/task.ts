// A place for a request that takes time: progress, a button that ends it, the answer or what went wrong.

import { announce, h } from "./dom";
import { Cancelled, Problem, runs, type Progress } from "./engine";
import type { Trouble } from "./types";

export class Task {
  readonly place = h("div", { className: "results" });
  private readonly bar = h("progress", { "aria-label": "Runs made" });
  private readonly words = h("span", { className: "quiet" });
  private readonly stop = h("button", { type: "button", className: "stop", onclick: () => runs.cancel() }, "Stop");
  readonly status = h("div", { className: "tools status", hidden: true }, this.bar, this.words, this.stop);

  /// `heading`: stands over every answer in place of the name of what was done.
  constructor(private readonly heading?: string) {}

  /// Does `work` and shows its result. A request that is under way is ended first: its answer is not wanted any more.
  /// `slow`: said when no run ends for five seconds.
  async run(name: string, work: (progress: Progress) => Promise<HTMLElement>, slow?: string): Promise<void> {
    if (runs.busy) runs.cancel();
    this.place.setAttribute("aria-busy", "true");
    this.bar.removeAttribute("value");
    this.words.textContent = `${name} …`;
    this.status.hidden = false;
    const begun = performance.now();
    let own = true;
    const warn = () => setTimeout(() => { if (slow) this.words.textContent = `${name} … ${slow}`; }, 5000);
    let silent = warn();
    try {
      const shown = await work((made, all) => {
        clearTimeout(silent);
        silent = warn();
        this.bar.max = all;
        this.bar.value = made;
        this.words.textContent = `${name}: ${made.toLocaleString("en")} of ${all.toLocaleString("en")} runs`;
      });
      const seconds = ((performance.now() - begun) / 1000).toFixed(1);
      this.place.replaceChildren(h("h2", {}, this.heading ?? name), h("p", { className: "quiet" }, `Done in ${seconds} s on this machine.`), shown);
      announce(`${name} is done`);
    } catch (error) {
      if (error instanceof Cancelled) {
        // Another request may have taken the place.
        own = !runs.busy;
        if (own) this.words.textContent = `${name}: stopped`;
        return;
      }
      this.place.replaceChildren(wrong(troubleOf(error)));
    } finally {
      clearTimeout(silent);
      if (own) {
        this.status.hidden = true;
        this.place.removeAttribute("aria-busy");
      }
    }
  }
}

export const troubleOf = (error: unknown): Trouble => (error instanceof Problem ? error.trouble : { problem: String(error) });

export function wrong(trouble: Trouble): HTMLElement {
  const place = trouble.line ? `${trouble.text ?? "the scenario"}, line ${trouble.line}, column ${trouble.column}: ` : "";
  return h("div", { className: "warning", role: "alert" }, h("p", {}, place, h("b", {}, trouble.problem)), trouble.help ? h("p", {}, trouble.help) : null);
}
