// The reader's own scheduler: its text, examples, and what it sees.

import { h, unique } from "./dom";
import { Editor } from "./editor";
import { inside, parsed, Problem } from "./engine";
import type { About, Trouble, Word } from "./types";

/// Name in scenarios and comparisons.
export const OWN = "own";

const EXAMPLES: [string, string][] = [
  ["min-rtt", `// The fastest subflow that has room: what Linux does.
function decide(now, view) {
  let best = null;
  for (const subflow of view.subflows) {
    if (!subflow.has_room) continue;
    if (best === null || subflow.srtt_s < best.srtt_s) best = subflow;
  }
  return best; // null: wait
}
`],
  ["one that waits", `// Leaves a slow subflow idle while the fast one would be through sooner, as ECF does.
// Variables out here belong to one connection.
let waiting = false;

function decide(now, view) {
  const fast = view.fastest();
  const free = view.fastest_with_room();
  if (free === null) return wait();
  if (free.id === fast.id) {
    waiting = false;
    return send(free);
  }
  // Rounds that the fast one needs for all that waits, against one round of the slow one.
  const rounds = 1 + view.unsent_bytes / fast.cwnd_bytes;
  const patience = waiting ? 1.25 : 1;
  waiting = rounds * fast.srtt_s < patience * free.srtt_s;
  // Asked again at the next event, or at this time if that is sooner.
  return waiting ? wait(now + fast.srtt_s) : send(free);
}
`],
  ["copies", `// New data goes to the fastest subflow with room. While there is none to send, each subflow repeats what others carry.
const repeats = true;
const through = new Set(); // Subflows that have carried everything.

function observe(now, event) {
  if (event.kind === "repeated" && event.length_bytes === 0) through.add(event.on);
  if (event.kind === "sent") through.clear();
}

function decide(now, view) {
  const free = view.fastest_with_room();
  if (free !== null && view.sendable_bytes > 0) return send(free);
  if (view.data_una === view.unsent_from) return wait();
  const idle = view.subflows.find((it) => it.has_room_to_repeat && !through.has(it.id));
  return idle ? repeat(idle, view.data_una) : wait();
}
`],
];

export class Written {
  readonly element: HTMLDetailsElement;
  private readonly editor: Editor;
  private readonly choice = h("select", {
    id: unique("example"), onchange: () => {
      const example = EXAMPLES.find(([name]) => name === this.choice.value);
      if (example) this.take(example[1]);
    },
  });
  private readonly notice = h("p", { className: "warning", hidden: true }, "This scheduler came with the link: it is somebody else’s program. Nothing of it has run. Read it; it runs when you press a button.");
  private typed = 0;

  constructor({ fields }: About) {
    this.editor = new Editor("The scheduler own, in JavaScript", () => this.changed(), { rows: 14 });
    const { choice } = this;
    choice.append(...EXAMPLES.map(([name]) => h("option", { value: name }, name)), h("option", { value: "", hidden: true }, "your own"));
    const words = (heading: string, list: Word[]) => [h("p", {}, h("b", {}, heading)), h("dl", { className: "words" }, ...list.flatMap(({ name, about }) => [h("dt", {}, h("code", {}, name)), h("dd", {}, about)]))];
    this.element = h("details", { className: "own" }, h("summary", {}, "Write a scheduler in JavaScript"),
      h("p", {}, "It is called ", h("code", {}, OWN), ": tick it under “Schedulers to compare”, name it in the scenario (", h("code", {}, "scheduler = \"own\""), "), or choose it in the player from the middle of a run on."),
      this.notice,
      h("p", { className: "field" }, h("label", { for: choice.id }, "Begin with the example"), choice),
      this.editor.element,
      h("p", { className: "quiet" }, "It runs in this browser and reaches neither the network nor this page. Math.random draws from the run’s seed; Date and other clocks are refused. If it never returns, Stop ends it; one that only waits is overruled, and counted, as every scheduler is."),
      h("details", {}, h("summary", {}, "What it sees, and what it may answer"),
        h("p", {}, "decide(now, view) is called while data waits, again and again, until it waits. It returns a subflow of the view or its id (the next unsent segment leaves there), null (nothing now), or what one of these makes:"),
        h("dl", { className: "words" },
          h("dt", {}, h("code", {}, "send(on, skip_bytes = 0)")), h("dd", {}, "the unsent bytes that begin so far from the front, which faster subflows fill"),
          h("dt", {}, h("code", {}, "repeat(on, from_dsn)")), h("dd", {}, "a copy of the first data from there on that is not acknowledged; a scheduler that does so has const repeats = true"),
          h("dt", {}, h("code", {}, "wait(until_s)")), h("dd", {}, "nothing now; asked again at the next event, or at that time of the run")),
        h("p", {}, `A function observe(now, event), if there is one, is told each event: ${fields.events.join(", ")} (event.kind). Names are those of Python; data sequence numbers have 64 bits and are of the type BigInt.`),
        ...words("view", fields.view), h("p", {}, "view.subflows are the usable subflows; view.fastest(), view.fastest_with_room() and view.subflow(id) choose one, or null."),
        ...words("a subflow", fields.subflow), ...words("an event", fields.event)));
    this.take(EXAMPLES[0]?.[1] ?? "");
  }

  get text(): string { return this.editor.text; }

  /// Takes a script over. One from a link is somebody else's.
  take(text: string, foreign = false): void {
    this.editor.text = text;
    this.notice.hidden = !foreign;
    if (foreign) this.element.open = true;
    this.changed();
  }

  /// True until the reader has let it run.
  get foreign(): boolean { return !this.notice.hidden; }

  /// The reader has pressed a button.
  allow(): void { this.notice.hidden = true; }

  /// Shows what a run has found wrong with this text of it; `null`: nothing. That is worth more than a reading that is
  /// under way, unless another text has been typed since.
  mistake(text: string, trouble: Trouble | null): void {
    if (text !== this.text) return;
    this.typed++;
    if (trouble) this.element.open = true;
    this.show(trouble);
  }

  private show(trouble: Trouble | null): void { this.editor.mistake(trouble, "It can be read. Whether it runs, a run shows."); }

  private changed(): void {
    // Without a simulator in the page nothing could run it.
    if (!inside) return;
    this.choice.value = EXAMPLES.find(([, text]) => text === this.text)?.[0] ?? "";
    const typed = ++this.typed;
    setTimeout(() => void parsed(this.text).then(() => null, (error: unknown) => (error instanceof Problem ? error.trouble : { problem: String(error) })).then((trouble) => {
      if (typed === this.typed) this.show(trouble);
    }), 200);
  }
}
