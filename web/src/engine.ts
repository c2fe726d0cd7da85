// The page's side of the worker: a promise for each request, progress, and an end to it.

import code from "virtual:worker";
import type { Trouble } from "./types";
import { unpack } from "./unpack";

export class Problem extends Error {
  constructor(readonly trouble: Trouble) {
    super(trouble.problem);
  }
}

/// The reader ended it.
export class Cancelled extends Error {}

interface Waiting { done(answer: string): void; failed(error: Error): void; progress?: Progress }
export type Progress = (made: number, all: number) => void;

let compiled: Promise<WebAssembly.Module> | undefined;
let worker: string | undefined;

/// Unpacks and compiles the simulator, once for all workers.
function compile(): Promise<WebAssembly.Module> {
  compiled ??= (async () => {
    const place = document.getElementById("engine");
    const packed = Uint8Array.from(atob(place?.textContent ?? ""), (c) => c.charCodeAt(0));
    place?.remove();
    return WebAssembly.compile(unpack(packed, Number(place?.dataset.length)));
  })();
  return compiled;
}

export class Engine {
  private worker: Promise<Worker> | undefined;
  private readonly waiting = new Map<number, Waiting>();
  private last = 0;

  private start(): Promise<Worker> {
    return compile().then((module) => {
      worker ??= URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
      const made = new Worker(worker);
      made.addEventListener("message", (event: MessageEvent<{ id: number; answer?: string; made?: number; all?: number }>) => {
        const { id, answer, made: runs, all } = event.data;
        const waiting = this.waiting.get(id);
        if (answer === undefined) return waiting?.progress?.(runs ?? 0, all ?? 0);
        this.waiting.delete(id);
        waiting?.done(answer);
      });
      made.addEventListener("error", (event) => this.end(new Problem({ problem: `the worker stopped: ${event.message}` })));
      made.postMessage({ module });
      return made;
    });
  }

  async ask<T>(request: object, { files = [], progress }: { files?: ArrayBuffer[]; progress?: Progress | undefined } = {}): Promise<T> {
    this.worker ??= this.start();
    const running = await this.worker;
    const id = ++this.last;
    const answer = await new Promise<string>((done, failed) => {
      this.waiting.set(id, { done, failed, ...(progress ? { progress } : {}) });
      running.postMessage({ id, request: JSON.stringify(request), files }, files);
    });
    const read = JSON.parse(answer) as { ok?: T; error?: Trouble };
    if (read.error) throw new Problem(read.error);
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
export const quick = new Engine();
export const runs = new Engine();
