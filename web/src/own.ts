// The reader's own scheduler, in the worker: an instance of the script for each connection, its answers checked, and
// nothing within its reach that scenario and seed do not decide.

import type { Fields, Trouble, Word } from "./types";

/// Runs the script once, and returns the functions that it has.
export type Script = (send: unknown, repeat: unknown, wait: unknown) => { decide: unknown; observe: unknown; repeats: unknown };
type Decide = (now: number, view: View) => unknown;
type Observe = (now: number, event: object) => unknown;

/// Ends a request: what the script did, and where.
export class Refused extends Error {
  constructor(readonly trouble: Trouble) {
    super(trouble.problem);
  }
}

/// Names that remain: those of the language, and the console. `Math.random` becomes that of the connection.
const LANGUAGE = new Set(`
  Object Function Array Number Boolean String Symbol BigInt Math JSON Map Set WeakMap WeakSet RegExp Promise Proxy Reflect Iterator
  ArrayBuffer DataView Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array Float16Array Float32Array
  Float64Array BigInt64Array BigUint64Array Error AggregateError EvalError RangeError ReferenceError SyntaxError TypeError URIError
  parseInt parseFloat isNaN isFinite NaN Infinity undefined console
`.trim().split(/\s+/));

const INSTEAD: Record<string, string> = {
  Date: "the first argument of decide is the time of the run, in seconds", performance: "the first argument of decide is the time of the run, in seconds",
  crypto: "Math.random draws from the seed of the run", setTimeout: "answer wait(now + 0.01) to be asked again", setInterval: "answer wait(now + 0.01) to be asked again",
};

/// Takes everything away from what a script sees of its worker that is not of the language: clocks, network, messages.
function reduce(): void {
  const names = new Set<string>();
  const scope = globalThis;
  for (let at: object | null = scope; at && at !== Object.prototype; at = Object.getPrototypeOf(at) as object | null) {
    for (const name of Object.getOwnPropertyNames(at)) names.add(name);
  }
  for (const name of names) {
    if (LANGUAGE.has(name)) continue;
    const gone = () => {
      throw new ReferenceError(`\`${name}\` is not here: ${INSTEAD[name] ?? "a scheduler has its view, its own variables and the language"}`);
    };
    try {
      Object.defineProperty(scope, name, { get: gone, set: gone, configurable: false });
    } catch {
      // A variable of this file, which holds nothing.
    }
  }
}

/// A generator of numbers in [0, 1) (SplitMix64, its upper 53 bits).
function generator(seed: bigint): () => number {
  const word = (value: bigint) => BigInt.asUintN(64, value);
  let state = seed;
  return () => {
    state = word(state + 0x9e3779b97f4a7c15n);
    let mixed = word((state ^ (state >> 30n)) * 0xbf58476d1ce4e5b9n);
    mixed = word((mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn);
    return Number((mixed ^ (mixed >> 31n)) >> 11n) / 2 ** 53;
  };
}

/// Words of a call: the same bits as numbers and as integers.
class Words {
  readonly numbers: Float64Array;
  readonly bits: BigUint64Array;

  constructor(memory: ArrayBufferLike, at: number, length: number) {
    // A copy: the script may keep a view.
    this.bits = new BigUint64Array(memory, at, length).slice();
    this.numbers = new Float64Array(this.bits.buffer);
  }

  read(kind: Word["kind"], at: number): unknown {
    switch (kind) {
      case "number": return this.numbers[at];
      case "maybe": return Number.isNaN(this.numbers[at]) ? null : this.numbers[at];
      case "flag": return this.bits[at] !== 0n;
      case "dsn": return this.bits[at];
      case "maybe-dsn": return this.bits[at] === 0n ? null : this.bits[at + 1];
    }
  }
}

/// Something with named words. Properties are read when they are asked for.
class Thing {
  readonly #words: Words;
  readonly #at: number;

  constructor(words: Words, at: number) {
    this.#words = words;
    this.#at = at;
  }

  word(kind: Word["kind"], place: number): unknown { return this.#words.read(kind, this.#at + place); }
}

const width = (kind: Word["kind"]) => (kind === "maybe-dsn" ? 2 : 1);
const length = (words: Word[]) => words.reduce((sum, { kind }) => sum + width(kind), 0);

function define(thing: { prototype: Thing }, words: Word[]): void {
  let at = 0;
  for (const { name, kind } of words) {
    const place = at;
    Object.defineProperty(thing.prototype, name, { enumerable: true, configurable: true, get(this: Thing) { return this.word(kind, place); } });
    at += width(kind);
  }
}

class Subflow extends Thing {
  declare readonly id: number;
  declare readonly srtt_s: number;
  declare readonly has_room: boolean;
}

class View extends Thing {
  constructor(words: Words, at: number, readonly subflows: readonly Subflow[]) { super(words, at); }

  /// The subflow with the lowest SRTT, or null.
  fastest(): Subflow | null { return lowest(this.subflows); }
  /// The same of those with room.
  fastest_with_room(): Subflow | null { return lowest(this.subflows.filter((it) => it.has_room)); }
  subflow(id: number): Subflow | null { return this.subflows.find((it) => it.id === id) ?? null; }
}

function lowest(subflows: readonly Subflow[]): Subflow | null {
  let best: Subflow | null = null;
  for (const it of subflows) if (best === null || it.srtt_s < best.srtt_s) best = it;
  return best;
}

/// 0: wait, 1: wait until, 2: send, 3: repeat, as `crates/web/src/own.rs` reads them.
class Decision {
  constructor(readonly kind: number, readonly on: number, readonly more: bigint) {}
}

const ACCEPTED = "a subflow of the view, its id, null to wait, or what send(on, skip_bytes), repeat(on, from_dsn) or wait(until_s) make";
const MOST = 2n ** 64n;

/// A value as a message shows it.
function shown(value: unknown): string {
  if (value === undefined) return "nothing (undefined)";
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return `a function${value.name ? ` ${value.name}` : ""}`;
  if (typeof value === "symbol") return "a symbol";
  if (value instanceof Subflow) return `the subflow ${value.id}`;
  if (value instanceof Decision) return "a decision";
  try {
    const text = typeof value === "number" ? String(value) : JSON.stringify(value);
    return text.length > 80 ? `${text.slice(0, 80)}…` : text;
  } catch {
    return "an object";
  }
}

/// The id that a script names a subflow by.
function named(on: unknown, called: string): number {
  if (on instanceof Subflow) return on.id;
  if (typeof on === "number" && Number.isInteger(on) && on >= 0 && on < 2 ** 16) return on;
  throw new TypeError(`${called}: on is ${shown(on)}; accepted: a subflow of the view, or its id`);
}

function send(on: unknown, skip: unknown = 0): Decision {
  const id = named(on, "send");
  if (typeof skip === "number" && Number.isSafeInteger(skip) && skip >= 0) return new Decision(2, id, BigInt(skip));
  throw new TypeError(`send: skip_bytes is ${shown(skip)}; accepted: a whole number of bytes, such as 0`);
}

function repeat(on: unknown, from: unknown): Decision {
  const id = named(on, "repeat");
  if (typeof from === "bigint" && from >= 0n && from < MOST) return new Decision(3, id, from);
  throw new TypeError(`repeat: from_dsn is ${shown(from)}; accepted: a data sequence number, such as view.data_una (of 64 bits, so a BigInt)`);
}

function wait(until?: unknown): Decision {
  if (until === undefined || until === null) return new Decision(0, 0, 0n);
  if (typeof until === "number" && until >= 0 && until < 1e9) return new Decision(1, 0, BigInt(Math.round(until * 1e9)));
  throw new TypeError(`wait: until_s is ${shown(until)}; accepted: seconds of the run, such as now + 0.01`);
}

/// Line and column of the script that an error names; the first line of the script is the second of its file.
function place(error: unknown, lines: number): { line?: number; column?: number } {
  if (!(error instanceof Error) || typeof error.stack !== "string") return {};
  for (const frame of error.stack.split("\n")) {
    const [, line, column] = /:(\d+):(\d+)\)?$/.exec(frame) ?? [];
    const at = Number(line) - 1;
    if (at >= 1 && at <= lines) return { line: at, column: Number(column) };
  }
  return {};
}

export class Own {
  private readonly instances = new Map<number, { decide: Decide; observe: Observe | undefined; random: () => number }>();
  private answer = new Decision(0, 0, 0n);
  private random = generator(0n);
  private declared: number | undefined;
  private readonly subflow: number;
  private readonly view: number;

  /// `memory`: that of the simulator, which grows. `lines`: how many the script has.
  constructor(private readonly script: Script, private readonly lines: number, private readonly fields: Fields, private readonly memory: WebAssembly.Memory) {
    define(Subflow, fields.subflow);
    define(View, fields.view);
    [this.subflow, this.view] = [length(fields.subflow), length(fields.view)];
    Math.random = () => this.random();
    reduce();
  }

  /// Functions that the simulator calls; `anabranch_web::abi` describes each.
  readonly imports = {
    own: () => (this.declared ??= this.declare()),
    begin: (connection: number, seed: bigint) => {
      const random = generator(seed);
      this.random = random;
      const { decide, observe } = this.run();
      this.instances.set(connection, { decide, observe, random });
    },
    decide: (connection: number, at: number, length: number) => this.decide(connection, at, length),
    more: () => this.answer.more,
    observe: (connection: number, at: number, length: number) => this.observe(connection, at, length),
    end: (connection: number) => void this.instances.delete(connection),
  };

  private declare(): number {
    const { observe, repeats } = this.run();
    return 1 + (repeats ? 2 : 0) + (observe ? 4 : 0);
  }

  private run(): { decide: Decide; observe: Observe | undefined; repeats: boolean } {
    const { decide, observe, repeats } = this.guarded(undefined, () => this.script(send, repeat, wait));
    if (typeof decide !== "function") this.refuse("the scheduler `own` has no function `decide`", "accepted: function decide(now, view) { … }");
    if (observe !== undefined && typeof observe !== "function") this.refuse(`\`observe\` of the scheduler \`own\` is ${shown(observe)}`, "accepted: function observe(now, event) { … }, or none");
    if (repeats !== undefined && typeof repeats !== "boolean") this.refuse(`\`repeats\` of the scheduler \`own\` is ${shown(repeats)}`, "accepted: const repeats = true, if it answers with repeat");
    return { decide: decide as Decide, observe: observe as Observe | undefined, repeats: repeats === true };
  }

  private decide(connection: number, at: number, size: number): number {
    const instance = this.instances.get(connection);
    if (!instance) throw new Error("a connection without its scheduler");
    this.random = instance.random;
    const words = new Words(this.memory.buffer, at, size);
    const now = words.numbers[0] ?? 0;
    const subflows: Subflow[] = [];
    for (let from = 1 + this.view; from < size; from += this.subflow) subflows.push(new Subflow(words, from));
    const answer = this.guarded(now, () => instance.decide(now, new View(words, 1, Object.freeze(subflows))));
    this.answer = this.read(now, answer);
    const { kind, on } = this.answer;
    if (kind >= 2 && !subflows.some(({ id }) => id === on)) {
      this.refuse(`the scheduler \`own\` answered the subflow ${on} ${time(now)}, which is not in the view`, `accepted: ${subflows.map(({ id }) => id).join(", ")}`);
    }
    return kind + 8 * on;
  }

  private read(now: number, answer: unknown): Decision {
    if (answer instanceof Decision) return answer;
    if (answer === null) return wait();
    if (answer instanceof Subflow || (typeof answer === "number" && Number.isInteger(answer) && answer >= 0 && answer < 2 ** 16)) return send(answer);
    return this.refuse(`the scheduler \`own\` answered ${shown(answer)} ${time(now)}, which is no decision`, `accepted: ${ACCEPTED}`);
  }

  private observe(connection: number, at: number, size: number): void {
    const instance = this.instances.get(connection);
    if (!instance?.observe) return;
    this.random = instance.random;
    const words = new Words(this.memory.buffer, at, size);
    const now = words.numbers[0] ?? 0;
    const event: Record<string, unknown> = { kind: this.fields.events[words.numbers[1] ?? 0] };
    let from = 2;
    for (const { name, kind } of this.fields.event) {
      event[name] = words.read(kind, from);
      from += width(kind);
    }
    this.guarded(now, () => instance.observe?.(now, event));
  }

  /// Calls the script. What it throws ends the request.
  private guarded<T>(now: number | undefined, call: () => T): T {
    try {
      return call();
    } catch (error) {
      const said = error instanceof Error ? `${error.name}: ${error.message}` : `it threw ${shown(error)}`;
      return this.refuse(`the scheduler \`own\` failed${now === undefined ? "" : ` ${time(now)}`}: ${said}`, undefined, place(error, this.lines));
    }
  }

  private refuse(problem: string, help?: string, at: { line?: number; column?: number } = {}): never {
    throw new Refused({ problem, ...(help ? { help } : {}), ...(at.line ? { text: "the scheduler `own`", ...at } : {}) });
  }
}

const time = (now: number) => `${now.toFixed(6)} s into the run`;
