// The simulator in a worker: requests come in as JSON, answers go out as JSON. Ending the worker stops it.

interface Exports {
  memory: WebAssembly.Memory;
  reserve(length: number): number;
  ask(length: number): number;
  length(): number;
  text(): number;
}

interface Asked { id: number; request: string; files: ArrayBuffer[] }

let compiled: WebAssembly.Module | undefined;
let instance: Exports | undefined;
let current = 0;
let told = 0;

function progress(made: number, all: number): void {
  // Runs are short: saying each would cost more than they do.
  const now = performance.now();
  if (made < all && now - told < 50) return;
  told = now;
  postMessage({ id: current, made, all });
}

function started(): Exports {
  if (!compiled) throw new Error("the simulator did not arrive");
  instance ??= new WebAssembly.Instance(compiled, { anabranch: { progress } }).exports as unknown as Exports;
  return instance;
}

const text = (it: Exports, length: number) => new TextDecoder().decode(new Uint8Array(it.memory.buffer, it.text(), length));

function answer({ request, files }: Asked): string {
  const it = started();
  const words = new TextEncoder().encode(request);
  const all = files.reduce((sum, file) => sum + file.byteLength, words.length);
  const at = it.reserve(all);
  let place = at;
  for (const part of [words, ...files.map((file) => new Uint8Array(file))]) {
    new Uint8Array(it.memory.buffer, place, part.length).set(part);
    place += part.length;
  }
  try {
    return text(it, it.ask(words.length));
  } catch (error) {
    // A promise of the simulator was broken: its words are there, and the next request begins anew.
    instance = undefined;
    const said = text(it, it.length()) || String(error);
    return JSON.stringify({ error: { problem: `the simulator has a bug: ${said}`, help: "please report it, with the scenario and the seed" } });
  }
}

addEventListener("message", (event: MessageEvent<{ module: WebAssembly.Module } | Asked>) => {
  if ("module" in event.data) {
    compiled = event.data.module;
    return;
  }
  current = event.data.id;
  postMessage({ id: current, answer: answer(event.data) });
});
