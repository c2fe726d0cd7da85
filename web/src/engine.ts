// The page's side of the worker: a promise for each request, progress, and an end to it.

import code from "virtual:worker";
import { Remote } from "./remote";
import type { Trouble } from "./types";
import { unpacked } from "./unpack";

export class Problem extends Error {
  constructor(readonly trouble: Trouble) {
    super(trouble.problem);
  }
}

/// The reader ended it.
export class Cancelled extends Error {}

/// Name by which errors call the text of the reader's own scheduler.
const OWN = "the scheduler `own`";
const HELP = "the language is JavaScript: see the examples";
const blob = (parts: string[]) => URL.createObjectURL(new Blob(parts, { type: "text/javascript" }));
/// Scripts that were read, with what came of it.
const parses = new Map<string, Promise<void>>();

/// Reads a script as the browser does, and runs nothing of it. It must be whole by itself: then it cannot end the
/// function that it is put into.
export function parsed(script: string): Promise<void> {
  const known = parses.get(script);
  if (known) return known;
  const begun = new Promise<void>((done, failed) => {
    const url = blob([`"use strict"; throw "parsed";\n${script}\n`]);
    const reader = new Worker(url);
    reader.addEventListener("error", (event) => {
      event.preventDefault();
      reader.terminate();
      URL.revokeObjectURL(url);
      if (event.lineno === 1) return done();
      const problem = (event.message || "SyntaxError: it cannot be read").replace(/^Uncaught /, "");
      failed(new Problem({ problem, help: HELP, ...(event.lineno ? { text: OWN, line: event.lineno - 1, column: event.colno } : {}) }));
    });
  });
  if (parses.size > 50) parses.clear();
  parses.set(script, begun);
  return begun;
}

/// The script as a function, which the worker calls for each connection. It begins on the second line.
const wrapped = (script: string) => `self.ownScript = function (send, repeat, wait) {"use strict";\n${script}\n;return {
  decide: typeof decide === "undefined" ? undefined : decide, observe: typeof observe === "undefined" ? undefined : observe,
  repeats: typeof repeats === "undefined" ? undefined : repeats };};\n`;

interface Waiting { done(answer: string): void; failed(error: Error): void; progress?: Progress; early?: Early<unknown> }
export type Progress = (made: number, all: number) => void;
/// Takes an early form of the answer; `read` reads it.
export type Early<T> = (read: () => T, made: number, all: number) => void;

let compiled: Promise<Compiled> | undefined;
let worker: string | undefined;
/// The simulator in the page; without one, the program that serves the page has it.
const place = document.getElementById("engine");
export const inside = place !== null;

interface Compiled { module?: WebAssembly.Module; build?: string | undefined }

/// Unpacks and compiles the simulator, once for all workers.
function compile(): Promise<Compiled> {
  compiled ??= (async () => {
    if (!place) return {};
    return { module: await WebAssembly.compile(unpacked(place)), build: place.dataset.build };
  })();
  return compiled;
}

const lines = (script: string) => script.split("\n").length;

export class Engine {
  private worker: Promise<Worker | Remote> | undefined;
  private readonly waiting = new Map<number, Waiting>();
  private last = 0;
  private script: string | undefined;

  /// `names`: knows the reader's own scheduler by its name, and runs nothing.
  constructor(private readonly names = false) {}

  private start(): Promise<Worker | Remote> {
    const script = this.script;
    return compile().then(({ module, build }) => {
      worker ??= blob([code]);
      // No `eval`, and no exception from the page's policy: the script is a part of the worker's own file.
      const made = module ? new Worker(script === undefined ? worker : blob([wrapped(script), code])) : new Remote();
      made.addEventListener("message", (event) => {
        const { id, answer, made: runs = 0, all = 0, early } = (event as MessageEvent<{ id: number; answer?: string; made?: number; all?: number; early?: string }>).data;
        const waiting = this.waiting.get(id);
        if (early !== undefined) return waiting?.early?.(() => JSON.parse(early) as unknown, runs, all);
        if (answer === undefined) return waiting?.progress?.(runs, all);
        this.waiting.delete(id);
        waiting?.done(answer);
      });
      made.addEventListener("error", (error) => {
        error.preventDefault();
        const event = error as ErrorEvent;
        const at = event.lineno - 1;
        const own = script !== undefined && at >= 1 && at <= lines(script);
        this.end(new Problem(own
          ? { problem: event.message.replace(/^Uncaught /, ""), help: HELP, text: OWN, line: at, column: event.colno }
          : { problem: `the worker stopped: ${event.message}` }));
      });
      made.postMessage({ module, build, own: script === undefined ? (this.names ? "named" : undefined) : { lines: lines(script) } });
      return made;
    });
  }

  /// `script`: the reader's own scheduler, if the request is to run it.
  async ask<T>(request: object, { files = [], progress, early, script }: { files?: ArrayBuffer[]; progress?: Progress | undefined; early?: Early<T> | undefined; script?: string | undefined } = {}): Promise<T> {
    if (script !== undefined) await parsed(script);
    // A script has a worker of its own: what it changes there is gone with it.
    if (script !== this.script) this.cancel();
    this.script = script;
    this.worker ??= this.start();
    const running = await this.worker;
    const id = ++this.last;
    const answer = await new Promise<string>((done, failed) => {
      this.waiting.set(id, { done, failed, ...(progress ? { progress } : {}), ...(early ? { early: early as Early<unknown> } : {}) });
      running.postMessage({ id, request: JSON.stringify(request), files }, files);
    });
    const read = JSON.parse(answer) as { ok?: T; error?: Trouble };
    if (read.error) {
      // A worker in which a script has run can't begin anew: most of what it would take is gone.
      if (script !== undefined) this.cancel();
      throw new Problem(read.error);
    }
    return read.ok as T;
  }

  get busy(): boolean {
    return this.waiting.size > 0;
  }

  /// Ends whatever runs. The next request starts a new worker.
  cancel(): void {
    this.end(new Cancelled());
  }

  private end(error: Error): void {
    void this.worker?.then((it) => it.terminate(), () => undefined);
    this.worker = undefined;
    const all = [...this.waiting.values()];
    this.waiting.clear();
    for (const it of all) it.failed(error);
  }
}

/// One for what is quick, such as checking a text while it is typed, and one for runs.
export const quick = new Engine(true);
export const runs = new Engine();
