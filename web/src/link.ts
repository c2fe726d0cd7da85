// The address behind `#`: which part of the page is open; in the laboratory scenario, seed and what was asked; of a
// figure of a paper repetitions and overrides.

export interface Lab {
  name: string;
  /// Absent for a shipped scenario that was not changed.
  text?: string;
  seed?: number;
  repeat?: number;
  schedulers?: string[];
  /// The reader's own scheduler. One that comes with a link is somebody else's.
  own?: string;
  /// Action that begins at once: `run`, `compare` or `why`.
  task?: string;
}

/// A figure of a paper, and how to run it.
export interface Chosen {
  /// All points in place of some.
  full?: boolean;
  repeat?: number;
  /// Overrides, as `--set` takes them.
  sets: string[];
  /// True if it begins at once.
  run?: boolean;
}

const coded = (bytes: Uint8Array) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const decoded = (text: string) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));

async function through(bytes: Uint8Array<ArrayBuffer>, stream: GenericTransformStream): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream as ReadableWritablePair<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>)).arrayBuffer());
}

const packed = async (text: string) => coded(await through(new TextEncoder().encode(text) as Uint8Array<ArrayBuffer>, new CompressionStream("deflate-raw")));

async function unpacked(text: string, called: string): Promise<string> {
  try {
    return new TextDecoder().decode(await through(decoded(text), new DecompressionStream("deflate-raw")));
  } catch {
    throw new Error(`${called} in this link is damaged: copy the link whole`);
  }
}

/// The fragment of a laboratory: a text is compressed, so that mail programs leave the link whole.
export async function write(lab: Lab): Promise<string> {
  const query = new URLSearchParams({ name: lab.name });
  if (lab.text !== undefined) query.set("text", await packed(lab.text));
  if (lab.own !== undefined) query.set("own", await packed(lab.own));
  if (lab.seed !== undefined) query.set("seed", String(lab.seed));
  if (lab.repeat !== undefined) query.set("repeat", String(lab.repeat));
  if (lab.schedulers?.length) query.set("schedulers", lab.schedulers.join(","));
  if (lab.task) query.set("do", lab.task);
  return `#lab?${query}`;
}

export async function read(query: string): Promise<Lab> {
  const found = new URLSearchParams(query);
  const lab: Lab = { name: found.get("name") ?? "wlan-lte" };
  const text = found.get("text");
  if (text !== null) lab.text = await unpacked(text, "the scenario");
  const own = found.get("own");
  if (own !== null) lab.own = await unpacked(own, "the scheduler");
  for (const key of ["seed", "repeat"] as const) {
    const value = Number(found.get(key));
    if (found.get(key) && Number.isSafeInteger(value) && value >= 0) lab[key] = value;
  }
  const schedulers = found.get("schedulers");
  if (schedulers) lab.schedulers = schedulers.split(",").filter(Boolean);
  const task = found.get("do");
  if (task) lab.task = task;
  return lab;
}

/// The fragment of a figure of a paper.
export function writeStudy(name: string, { full, repeat, sets, run }: Chosen): string {
  const query = new URLSearchParams();
  if (full) query.set("points", "all");
  if (repeat !== undefined) query.set("repeat", String(repeat));
  for (const set of sets) query.append("set", set);
  if (run) query.set("do", "run");
  const text = query.toString();
  return `#paper/${name}${text ? `?${text}` : ""}`;
}

export function readStudy(query: string): Chosen {
  const found = new URLSearchParams(query);
  const repeat = Number(found.get("repeat"));
  return {
    full: found.get("points") === "all", run: found.get("do") === "run", sets: found.getAll("set"),
    ...(Number.isSafeInteger(repeat) && repeat > 0 ? { repeat } : {}),
  };
}
