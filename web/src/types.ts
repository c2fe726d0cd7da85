// What the simulator answers (crates/web).

export interface Source { name: string; text: string; sets: string[] }

export interface Trouble { problem: string; help?: string; text?: string; line?: number; column?: number }

export interface Policy { name: string; about: string; paper: string | null }

export interface Lesson {
  title: string; question: string; before: string[]; after: string[]; repeat: number; scenario: string;
  systems: { name: string; sets: string[] }[];
  changes: { about: string; key: string; values: string[]; look: string }[];
}

/// A word of a view or an event, by which a scheduler reads it.
export interface Word { name: string; about: string; kind: "number" | "maybe" | "flag" | "dsn" | "maybe-dsn" }
export interface Fields { view: Word[]; subflow: Word[]; event: Word[]; events: string[] }

export interface About {
  version: string; build: string; schedulers: Policy[]; scenarios: { name: string; text: string }[]; schema: Schema;
  limits: { name: string; letter: string; meaning: string }[]; lessons: [string, Lesson][];
  fields: Fields;
}

export interface Schema {
  $ref?: string; $defs?: Record<string, Schema>; properties?: Record<string, Schema>; additionalProperties?: Schema | boolean;
  items?: Schema; anyOf?: Schema[]; oneOf?: Schema[]; enum?: unknown[]; const?: unknown; type?: string | string[]; description?: string;
  pattern?: string; default?: unknown;
}

export interface Checked {
  name: string; about: string | null; digest: string; seed: number; repeat: number; random: boolean; paths: string[]; scheduler: string;
  measure: string; notes: string[];
}

export interface Grid { caption: string; columns: { head: string; right: boolean }[]; rows: string[][]; notes: string[] }

export interface Shown {
  title: string; about: string; warnings: string[]; tables: Grid[]; facts: [string, string][]; command: string;
  systems: { name: string; set: string[]; policies: [string, string][] }[];
  figures: { id: string; title: string; notes: string[] }[];
  charts: { systems: string[]; figures: unknown[] };
}

export interface Paper { name: string; citation: string; belief: string; studies: { name: string; figure: string; title: string }[] }

/// A study before it runs.
export interface Outline {
  name: string; title: string; figure: string; about: string; axes: { label: string; points: string[]; quick: number[] }[];
  systems: { name: string; unavailable?: string }[]; plots: string[]; statements: [string, string][];
  assumptions: { about: string; value: string; reason: string }[]; alternatives: [string, string[]][]; repeat: number; quick_repeat: number;
}

export interface Judged {
  text: string; source: string; sentence?: string; claim: string; ours: string; details: string[]; own?: boolean; cause?: string;
  verdict: { symbol: string; word: string; class: string };
}

export interface StudyShown extends Shown { statements: Judged[] }

export interface Packets {
  sent: number[]; arrived: (number | null)[]; path: number[]; kind: number[]; from: number[]; length: number[];
}

export interface Movie {
  paths: string[]; client_sends: boolean; end: number; finished: boolean; packets: Packets; packets_in_run: number; time: number[];
  read: number[]; data_acked: number[]; out_of_order: number[]; buffered: number[]; received: number[][]; cwnd: number[][];
  queued: number[][]; transfers: { label: string; from: number; to: number | null; bytes: number }[];
}

export interface RunShown extends Shown { movie: Movie; digest: string }

export interface Interval { from_ns: number; to_ns: number; limit: string; path: number | null }
export interface Share { limit: string; path: string | null; time_ns: number; share: number }
export interface Bars { from_ns: number; time_ns: number; intervals: Interval[]; paths: { path: string; intervals: Interval[] }[] }
export interface Measure { mean: number; half: number | null; n: number }

export interface WhyAnswer {
  scenario: string; sentence: string; measure: string; unit: string; value: Measure; seed: number; repeat: number; paths: string[];
  unfinished_runs: number; shares: Share[]; transfers: (Bars & { label: string; connection: number; bytes: number })[];
  counterfactuals: { what: string; sets: string[]; value: Measure; difference: Measure | null; unfinished_runs: number }[];
  left_out: { what: string; because: string }[];
}

export interface CaptureAnswer {
  sentence: string;
  connection: {
    number: number; multipath: boolean; endpoints: [string, string]; captured: string; sides: [string, string]; unknown: string[];
    directions: (Bars & { from: number; bytes: number; confidence: string; shares: Share[] })[];
  } | null;
  others: { number: number; multipath: boolean; endpoints: [string, string]; bytes: [number, number] }[];
  other_connections: number;
  files: { name: string; is_capture: boolean; packets: number; error: string | null; notes: string[] }[];
}
