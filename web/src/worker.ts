// The simulator in a worker: requests come in as JSON, answers go out as JSON. Ending the worker stops it.

import { Own, Refused, type Script } from "./own";
import type { Fields } from "./types";

interface Exports {
  memory: WebAssembly.Memory;
  reserve(length: number): number;
  ask(length: number): number;
  named(length: number): void;
  fields(): number;
  length(): number;
  text(): number;
}

interface Begin {
  module: WebAssembly.Module;
  /// The build, which results name.
  build?: string;
  /// Lines of the reader's own scheduler, which stands before this program in its file; or only that there is one.
  own?: { lines: number } | "named";
}
interface Asked { id: number; request: string; files: ArrayBuffer[] }

// A script of the reader's takes them away from the worker (own.ts).
const { postMessage, performance, WebAssembly: Assembly, TextDecoder: Decoder, TextEncoder: Encoder } = globalThis;
const post = (message: object) => postMessage.call(globalScope, message);
const globalScope = globalThis;
const now = () => performance.now();

let compiled: WebAssembly.Module | undefined;
let instance: Exports | undefined;
let own: Begin["own"];
let build = "";
let script: Script | undefined;
let scheduler: Own | undefined;
let current = 0;
let told = 0;
/// Runs made and to be made; when an early answer was begun and shown, and how long it took.
const early = { made: 0, all: 0, begun: 0, shown: 0, took: 0 };

/// Returns 1 if it is time for an early form of the answer: twice a second, and for a tenth of the time at most.
function progress(made: number, all: number): number {
  const at = now();
  Object.assign(early, { made, all });
  // Runs are short: saying each would cost more than they do.
  if (made === all || at - told >= 50) {
    told = at;
    post({ id: current, made, all });
  }
  early.begun = at;
  return at - early.shown >= Math.max(500, 10 * early.took) ? 1 : 0;
}

function show(place: number, length: number): void {
  if (!instance) return;
  const answer = new Decoder().decode(new Uint8Array(instance.memory.buffer, place, length));
  post({ id: current, made: early.made, all: early.all, early: answer });
  early.shown = now();
  early.took = early.shown - early.begun;
}

/// A worker that only knows that there is a scheduler of the reader's runs none.
function stays(): never {
  throw new Error("a worker that runs nothing was asked to run");
}
const NONE = { own: () => (own ? 1 : 0), begin: stays, decide: stays, more: stays, observe: stays, end: stays };

function started(): Exports {
  if (!compiled) throw new Error("the simulator did not arrive");
  if (instance) return instance;
  // Imports are called later than they are made: the scheduler needs the memory of the instance.
  const later = Object.fromEntries(Object.keys(NONE).map((name) => [name, (...given: unknown[]) => {
    const of = (scheduler?.imports ?? NONE) as Record<string, (...given: unknown[]) => unknown>;
    return of[name]?.(...given);
  }]));
  instance = new Assembly.Instance(compiled, { anabranch: { ...later, progress, show } as WebAssembly.ModuleImports }).exports as unknown as Exports;
  instance.named(written(instance, [new Encoder().encode(build)]));
  if (script && typeof own === "object") {
    const fields = JSON.parse(text(instance, instance.fields())) as Fields;
    scheduler = new Own(script, own.lines, fields, instance.memory);
  }
  return instance;
}

const text = (it: Exports, length: number) => new Decoder().decode(new Uint8Array(it.memory.buffer, it.text(), length));

/// Writes these bytes into the room of a request, and returns their number.
function written(it: Exports, parts: Uint8Array[]): number {
  const all = parts.reduce((sum, part) => sum + part.length, 0);
  let place = it.reserve(all);
  for (const part of parts) {
    new Uint8Array(it.memory.buffer, place, part.length).set(part);
    place += part.length;
  }
  return all;
}

function answer({ request, files }: Asked): string {
  const it = started();
  const words = new Encoder().encode(request);
  written(it, [words, ...files.map((file) => new Uint8Array(file))]);
  try {
    return text(it, it.ask(words.length));
  } catch (error) {
    // The next request begins anew.
    instance = undefined;
    if (error instanceof Refused) return JSON.stringify({ error: error.trouble });
    // A promise of the simulator was broken: its words are there.
    const said = text(it, it.length()) || String(error);
    return JSON.stringify({ error: { problem: `the simulator has a bug: ${said}`, help: "please report it, with the scenario and the seed" } });
  }
}

addEventListener("message", (event: MessageEvent<Begin | Asked>) => {
  if ("module" in event.data) {
    ({ module: compiled, own, build = "" } = event.data);
    const scope = globalScope as { ownScript?: Script };
    script = scope.ownScript;
    delete scope.ownScript;
    return;
  }
  current = event.data.id;
  Object.assign(early, { shown: now(), took: 0 });
  post({ id: current, answer: answer(event.data) });
});
