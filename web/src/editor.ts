// A text of a scenario: line numbers, completions, and the mistake in its place.

import { complete, type Completions } from "./complete";
import { h, unique } from "./dom";
import type { Schema, Trouble } from "./types";

export class Editor {
  readonly element: HTMLElement;
  private readonly area: HTMLTextAreaElement;
  private readonly gutter: HTMLElement;
  private readonly list: HTMLUListElement;
  private readonly error: HTMLElement;
  private found: Completions = { from: 0, to: 0, items: [] };
  private chosen = 0;
  private wrong: number | undefined;

  private readonly schema: Schema | undefined;

  /// `schema`: of what may stand in the text, if it is a scenario.
  constructor(label: string, private readonly changed: () => void, { schema, rows = 22 }: { schema?: Schema; rows?: number }) {
    this.schema = schema;
    const [area, list, error] = [unique("scenario"), unique("completions"), unique("mistake")];
    this.gutter = h("div", { className: "gutter", "aria-hidden": "true" });
    this.list = h("ul", { id: list, className: "completions", role: "listbox", "aria-label": "Completions", hidden: true });
    this.error = h("div", { id: error, className: "mistake", role: "status" });
    this.area = h("textarea", {
      id: area, rows, spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off", "aria-describedby": error,
      "aria-autocomplete": schema ? "list" : undefined, "aria-controls": schema ? list : undefined,
      oninput: () => { this.number(); this.offer(false); this.changed(); },
      onscroll: () => { this.gutter.scrollTop = this.area.scrollTop; this.close(); },
      onkeydown: (event: KeyboardEvent) => this.key(event),
      onblur: () => setTimeout(() => this.close(), 150),
      onclick: () => this.close(),
    });
    this.element = h("div", { className: "editor" },
      h("label", { for: area }, label),
      schema ? h("span", { className: "quiet hint" }, "Ctrl and space: what may stand here") : null,
      h("div", { className: "text" }, this.gutter, this.area, this.list),
      this.error);
  }

  get text(): string { return this.area.value; }

  set text(text: string) {
    this.area.value = text;
    this.close();
    this.number();
  }

  /// Shows the mistake in the text, or that there is none.
  mistake(trouble: Trouble | null, words = ""): void {
    this.wrong = trouble?.line;
    this.number();
    this.area.setAttribute("aria-invalid", String(trouble !== null));
    if (!trouble) return this.error.replaceChildren(h("span", { className: "fine" }, words));
    const place = trouble.line ? `line ${trouble.line}, column ${trouble.column}: ` : "";
    this.error.replaceChildren(
      h("p", {}, trouble.line
        ? h("button", { type: "button", className: "place", onclick: () => this.go(trouble.line ?? 1, trouble.column ?? 1) }, place)
        : null, h("b", {}, trouble.problem)),
      ...(trouble.help ? [h("p", { className: "quiet" }, trouble.help)] : []));
  }

  private go(line: number, column: number): void {
    const lines = this.text.split("\n");
    const at = lines.slice(0, line - 1).reduce((sum, it) => sum + it.length + 1, 0) + column - 1;
    this.area.focus();
    this.area.setSelectionRange(at, at);
    this.area.scrollTop = Math.max(0, (line - 5) * this.lineHeight());
  }

  private lineHeight(): number { return Number.parseFloat(getComputedStyle(this.area).lineHeight); }

  private number(): void {
    const count = this.text.split("\n").length;
    this.gutter.replaceChildren(...Array.from({ length: count }, (_, n) => h("div", { className: n + 1 === this.wrong ? "bad" : "" }, String(n + 1))));
    this.gutter.scrollTop = this.area.scrollTop;
  }

  private offer(asked: boolean): void {
    if (!this.schema) return;
    const caret = this.area.selectionStart;
    this.found = complete(this.schema, this.text, caret);
    // Unasked, only behind a word that has begun.
    const begun = this.found.to > this.found.from;
    if (this.found.items.length === 0 || (!asked && !begun)) return this.close();
    this.chosen = 0;
    this.show();
  }

  private show(): void {
    const items = this.found.items;
    this.list.replaceChildren(...items.map((item, n) => h("li", {
      id: `${this.list.id}-${n}`, role: "option", "aria-selected": String(n === this.chosen),
      onmousedown: (event: Event) => { event.preventDefault(); this.chosen = n; this.take(); },
    }, h("code", {}, item.label), item.about ? h("span", { className: "quiet" }, ` ${item.about}`) : null)));
    this.list.hidden = false;
    this.area.setAttribute("aria-activedescendant", `${this.list.id}-${this.chosen}`);
    const before = this.text.slice(0, this.found.from).split("\n");
    const style = getComputedStyle(this.area);
    const context = document.createElement("canvas").getContext("2d");
    if (context) context.font = style.font;
    const width = (context?.measureText("0").width ?? 8) * (before.at(-1)?.length ?? 0);
    const left = this.area.offsetLeft + Number.parseFloat(style.paddingLeft) + width - this.area.scrollLeft;
    this.list.style.left = `${Math.max(0, Math.min(left, this.element.clientWidth - this.list.offsetWidth))}px`;
    this.list.style.top = `${Number.parseFloat(style.paddingTop) + before.length * this.lineHeight() - this.area.scrollTop + 2}px`;
    this.list.children[this.chosen]?.scrollIntoView({ block: "nearest" });
  }

  private close(): void {
    this.list.hidden = true;
    this.area.removeAttribute("aria-activedescendant");
  }

  private take(): void {
    const item = this.found.items[this.chosen];
    if (!item) return;
    // As the reader's own typing, so that undoing works.
    this.area.focus();
    this.area.setSelectionRange(this.found.from, this.found.to);
    if (!document.execCommand("insertText", false, item.insert)) this.area.setRangeText(item.insert, this.found.from, this.found.to, "end");
    this.close();
    this.number();
    if (item.insert.endsWith(" = ")) this.offer(true);
    this.changed();
  }

  private key(event: KeyboardEvent): void {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      return this.offer(true);
    }
    if (this.list.hidden) return;
    const count = this.found.items.length;
    const move = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (move !== undefined) {
      event.preventDefault();
      this.chosen = (this.chosen + move + count) % count;
      this.show();
    } else if (event.key === "Enter" || event.key === "Tab") {
      event.preventDefault();
      this.take();
    } else if (event.key === "Escape") {
      event.preventDefault();
      this.close();
    }
  }
}
