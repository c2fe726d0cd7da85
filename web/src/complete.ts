// Completions of a scenario file, from the schema that the simulator checks it with.

import type { Schema } from "./types";

export interface Item { insert: string; label: string; about: string }
export interface Completions { from: number; to: number; items: Item[] }

/// A schema with its reference followed, beside which a description may stand.
function followed(root: Schema, schema: Schema): Schema {
  if (!schema.$ref) return schema;
  const found = root.$defs?.[schema.$ref.replace("#/$defs/", "")];
  return found ? { ...followed(root, found), ...(schema.description ? { description: schema.description } : {}) } : schema;
}

/// The schemas that a value may satisfy, references and alternatives followed.
function choices(root: Schema, schema: Schema): Schema[] {
  const it = followed(root, schema);
  const inner = [...(it.anyOf ?? []), ...(it.oneOf ?? [])];
  return inner.length > 0 ? inner.flatMap((choice) => choices(root, choice)) : [it];
}

/// The tables that a place in the file may hold.
function tables(root: Schema, path: string[]): Schema[] {
  let found = [root];
  for (const part of path) {
    found = found.flatMap((schema) => choices(root, schema)).flatMap((schema) => {
      const inner = schema.items ?? schema;
      return choices(root, inner).flatMap((it) => {
        const property = it.properties?.[part];
        if (property) return [property];
        return typeof it.additionalProperties === "object" ? [it.additionalProperties] : [];
      });
    });
  }
  return found.flatMap((schema) => choices(root, schema)).flatMap((it) => (it.items ? choices(root, it.items) : [it]));
}

const HEADER = /^\s*\[{1,2}\s*([^\]]*?)\s*\]{1,2}\s*(#.*)?$/;
const parts = (header: string) => header.split(".").map((part) => part.trim().replace(/^"(.*)"$/, "$1")).filter(Boolean);
const first = (text = "") => text.replaceAll("\n", " ");

/// Words that are accepted at the caret.
export function complete(root: Schema, text: string, caret: number): Completions {
  const begin = text.lastIndexOf("\n", caret - 1) + 1;
  const line = text.slice(begin, caret);
  const none = { from: caret, to: caret, items: [] };
  if (line.includes("#")) return none;
  const header = /^\s*(\[{1,2}[^\]]*)$/.exec(line);
  if (header) return matching(headers(root, text), header[1] ?? "", caret, "]");

  const before = text.slice(0, begin).split("\n");
  const at = before.findLastIndex((it) => HEADER.test(it));
  const path = parts(HEADER.exec(before[at] ?? "")?.[1] ?? "");
  const here = tables(root, path);
  const key = /^\s*([\w-]*)$/.exec(line);
  if (key) {
    const rest = text.slice(begin).split("\n").slice(1);
    const next = rest.findIndex((it) => HEADER.test(it));
    const own = [...before.slice(at + 1), ...rest.slice(0, next < 0 ? rest.length : next)];
    const used = new Set(own.map((it) => /^\s*([\w-]+)\s*=/.exec(it)?.[1]));
    const items = here.flatMap((table) => Object.entries(table.properties ?? {}))
      .filter(([name, schema]) => !used.has(name) && (path.length > 0 || !isTable(root, schema)))
      .map(([name, schema]) => ({ insert: `${name} = `, label: name, about: first(followed(root, schema).description) }));
    return matching(items, key[1] ?? "", caret, "");
  }
  const value = /^\s*([\w-]+)\s*=\s*("?[\w.-]*)$/.exec(line);
  if (!value) return none;
  const of = here.flatMap((table) => table.properties?.[value[1] ?? ""] ?? []).flatMap((schema) => choices(root, schema));
  const items = of.flatMap((schema) => {
    if (schema.type === "boolean" || (Array.isArray(schema.type) && schema.type.includes("boolean"))) {
      return ["true", "false"].map((word) => ({ insert: word, label: word, about: "" }));
    }
    // A table with a name, such as a policy with parameters, is described where the bare name stands.
    const named = schema.properties?.name?.const;
    if (typeof named === "string") return [];
    const words = [...(schema.enum ?? []), ...(schema.const === undefined ? [] : [schema.const])].filter((it) => typeof it === "string");
    return words.map((word) => ({ insert: `"${word}"`, label: `"${word}"`, about: first(schema.description ?? meaning(of, word)) }));
  });
  return matching(items, value[2] ?? "", caret, '"');
}

/// The description of a policy's name, from the table of that name.
function meaning(of: Schema[], word: string): string | undefined {
  return of.find((schema) => schema.properties?.name?.const === word)?.properties?.name?.description;
}

function isTable(root: Schema, schema: Schema): boolean {
  return choices(root, schema).some((it) => it.properties !== undefined || it.items !== undefined || typeof it.additionalProperties === "object");
}

/// Tables that the file may have: those of one value once, those of several with a name.
function headers(root: Schema, text: string): Item[] {
  const there = new Set(text.split("\n").map((line) => HEADER.exec(line)?.[1]));
  return Object.entries(root.properties ?? {}).filter(([, schema]) => isTable(root, schema)).flatMap(([name, schema]) => {
    const it = followed(root, schema);
    const about = first(it.description);
    if (it.items) return [{ insert: `[[${name}]]`, label: `[[${name}]]`, about }];
    if (it.properties) return there.has(name) ? [] : [{ insert: `[${name}]`, label: `[${name}]`, about }];
    return [{ insert: `[${name}.`, label: `[${name}.NAME]`, about }];
  });
}

/// Those that begin with what is there, then those that contain it. What stands alone already needs no completion.
function matching(items: Item[], word: string, caret: number, closing: string): Completions {
  const bare = word.replace(/^["[]+/, "").toLowerCase();
  const of = (item: Item) => item.label.replace(/^["[]+/, "").toLowerCase();
  const begins = items.filter((item) => of(item).startsWith(bare));
  const contains = items.filter((item) => !of(item).startsWith(bare) && bare.length > 1 && of(item).includes(bare));
  const found = [...begins, ...contains].filter((item) => item.insert !== word + closing);
  return { from: caret - word.length, to: caret, items: found };
}
