// Lessons: a question, a figure that answers it, and what to change.

import { figures } from "./charts";
import { h, unique } from "./dom";
import { runs } from "./engine";
import { write } from "./link";
import { Task } from "./task";
import type { About, Lesson, Shown } from "./types";

export function contents(about: About): HTMLElement {
  return h("section", { "aria-labelledby": "lessons-title" },
    h("h1", { id: "lessons-title" }, "Multipath TCP in six lessons"),
    h("p", { className: "lead" }, "Each asks a question, runs a scenario in this browser, and says what to change. Two or three minutes each."),
    h("ol", { className: "cards" }, ...about.lessons.map(([name, lesson]) => h("li", {},
      h("a", { href: `#lesson/${name}` }, h("b", {}, lesson.title), h("span", {}, lesson.question))))));
}

export class LessonView {
  readonly element: HTMLElement;
  private readonly task = new Task("What happens");
  private readonly selects: HTMLSelectElement[];

  constructor(about: About, private readonly name: string, private readonly lesson: Lesson) {
    const place = about.lessons.findIndex(([other]) => other === name);
    const [before, after] = [about.lessons[place - 1], about.lessons[place + 1]];
    this.selects = lesson.changes.map(({ values }) => h("select", { id: unique("change"), onchange: () => void this.run() }, ...values.map((value, n) => h("option", { value }, n === 0 ? `${value} (as it is)` : value))));
    this.element = h("section", { className: "lesson", "aria-labelledby": "lesson-title" },
      h("p", { className: "kicker" }, `Lesson ${place + 1} of ${about.lessons.length}`),
      h("h1", { id: "lesson-title" }, lesson.title),
      h("p", { className: "question" }, lesson.question),
      ...lesson.before.map((text) => h("p", { className: "about" }, text)),
      h("div", { className: "changes", role: "group", "aria-label": "What to change" }, ...lesson.changes.map((change, n) => h("p", { className: "field" },
        h("label", { for: this.selects[n]?.id }, change.about), this.selects[n], h("small", { className: "quiet" }, change.look)))),
      this.task.status,
      this.task.place,
      h("h2", {}, "What it shows"),
      ...lesson.after.map((text) => h("p", { className: "about" }, text)),
      h("details", {}, h("summary", {}, "The scenario"), h("pre", { tabindex: "0" }, lesson.scenario)),
      h("p", { className: "tools wrap" }, h("button", { type: "button", onclick: () => void this.open() }, "Open it in the laboratory")),
      h("nav", { className: "tools wrap", "aria-label": "Other lessons" },
        before ? h("a", { href: `#lesson/${before[0]}` }, `◂ ${before[1].title}`) : null,
        after ? h("a", { href: `#lesson/${after[0]}` }, `${after[1].title} ▸`) : null));
  }

  run(): Promise<void> {
    const sets = this.lesson.changes.flatMap(({ key, values }, n) => {
      const value = this.selects[n]?.value;
      return value && value !== values[0] ? [`${key}=${value}`] : [];
    });
    return this.task.run("Lesson", async (progress) => {
      const shown = await runs.ask<Shown>({ do: "lesson", name: this.name, sets }, { progress });
      const first = (id: string) => id === "result" || id === "waiting";
      return h("div", {}, figures(shown, first),
        h("details", { className: "more" }, h("summary", {}, "The first repetition of each, over time"), figures(shown, (id) => !first(id))));
    });
  }

  private async open(): Promise<void> {
    location.hash = await write({ name: this.name, text: this.lesson.scenario });
  }
}
