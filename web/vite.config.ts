// Builds the laboratory into one file, dist/index.html, which opens from disk and asks for nothing over the network.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { build, defineConfig, type Plugin } from "vite";

const here = import.meta.dirname;
const report = resolve(here, "../crates/report/assets");
/// Scripts of the report in the order in which they run: figures look the same in both.
const DRAWING = ["vendor/vega.min.js", "chart.js", "drawing.js", "tables.js"];
const WORKER = "virtual:worker";

/// The worker as a text: the page starts it from a Blob, since a page from disk may not load another file.
function worker(): Plugin {
  return {
    name: "worker",
    resolveId: (id) => (id === WORKER ? `\0${WORKER}` : undefined),
    async load(id) {
      if (id !== `\0${WORKER}`) return undefined;
      const built = await build({
        configFile: false, logLevel: "warn", root: here,
        build: {
          write: false, target: "es2022",
          lib: { entry: resolve(here, "src/worker.ts"), formats: ["iife"], name: "worker" },
        },
      });
      const output = (Array.isArray(built) ? built : [built]).flatMap((it) => ("output" in it ? it.output : []));
      const chunk = output.find((it) => it.type === "chunk");
      if (!chunk || chunk.type !== "chunk") throw new Error("the worker was not built");
      return `export default ${JSON.stringify(chunk.code)};`;
    },
  };
}

/// Puts scripts, styles and the compiled simulator into the page, and names the scripts that may run by their hashes.
function single(wasm: string): Plugin {
  return {
    name: "single",
    enforce: "post",
    generateBundle(_, bundle) {
      const of = (test: (name: string) => boolean) => Object.values(bundle).filter((it) => test(it.fileName));
      const text = (it: (typeof bundle)[string]) => (it.type === "chunk" ? it.code : String(it.source));
      const [page] = of((name) => name.endsWith(".html"));
      const [main, ...others] = of((name) => name.endsWith(".js"));
      if (!page || page.type !== "asset" || !main || others.length > 0) throw new Error("expected one page and one script");
      const styles = of((name) => name.endsWith(".css")).map(text).join("\n");
      // Both are in the command, too, which serves them without a simulator in the page (crates/web/page).
      if (process.env.ANABRANCH_PARTS) {
        mkdirSync(process.env.ANABRANCH_PARTS, { recursive: true });
        writeFileSync(resolve(process.env.ANABRANCH_PARTS, "main.js"), text(main));
        writeFileSync(resolve(process.env.ANABRANCH_PARTS, "main.css"), styles);
      }
      const safe = (code: string) => code.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
      const drawing = DRAWING.map((name) => readFileSync(resolve(report, name), "utf8"));
      const code = safe(`\n${text(main)}\n`);
      const hashes = [...drawing, code].map((it) => `'sha256-${createHash("sha256").update(it).digest("base64")}'`);
      // A scheduler that the reader writes needs nothing more: it becomes a part of the worker's Blob (src/engine.ts).
      // The worker has this policy too: the script reaches no network, and `eval` and `Function` do not work there.
      const policy = [
        "default-src 'none'", `script-src 'wasm-unsafe-eval' ${hashes.join(" ")}`, "worker-src blob:", "style-src 'unsafe-inline'",
        "img-src data: blob:", "base-uri 'none'", "form-action 'none'",
      ].join("; ");
      // A third smaller than by gzip. Where a server compresses it once more, base64 costs nearly nothing; from disk
      // it costs a third.
      const packed = (id: string, bytes: Buffer, more = "") => {
        const held = execFileSync("xz", ["--format=lzma", "-9e", "--stdout"], { input: bytes, maxBuffer: 1 << 28 });
        return `<script type="text/plain" id="${id}" data-length="${bytes.length}"${more}>${held.toString("base64")}</script>\n`;
      };
      const simulator = readFileSync(wasm);
      const build = createHash("sha256").update(simulator).digest("hex").slice(0, 16);
      // That of uPlot is among them.
      const licences = readFileSync(resolve(report, "vendor/LICENSES"), "utf8");
      const escaped = licences.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
      let html = String(page.source)
        .replace(/<script type="module"[^>]*><\/script>\n?/, "")
        .replace(/<link rel="stylesheet"[^>]*>\n?/, "");
      const insert = (before: string, what: string) => {
        if (!html.includes(before)) throw new Error(`index.html has no ${before}`);
        // A function, since `$` has a meaning in replacements.
        html = html.replace(before, () => what + before);
      };
      insert('<meta name="viewport"', `<meta http-equiv="Content-Security-Policy" content="${policy}">\n`);
      insert("</head>", `<style>\n${styles}\n</style>\n`);
      insert("</pre></details>\n</footer>", escaped);
      insert("</body>", packed("drawing", Buffer.from(JSON.stringify(drawing))));
      insert("</body>", packed("engine", simulator, ` data-build="${build}"`));
      insert("</body>", `<script type="module">${code}</script>\n`);
      page.source = html;
      for (const it of Object.values(bundle)) if (it !== page) delete bundle[it.fileName];
    },
  };
}

/// The simulator; none where only the parts of the page are asked for.
const WASM = process.env.ANABRANCH_PARTS ? "/dev/null" : (process.env.ANABRANCH_WASM ?? resolve(here, "../target/wasm32-unknown-unknown/web/anabranch_web.wasm"));

export default defineConfig({
  root: here,
  base: "./",
  plugins: [worker(), single(WASM)],
  build: {
    outDir: process.env.ANABRANCH_PAGE ?? resolve(here, "dist"), emptyOutDir: false, target: "es2022", modulePreload: false,
    assetsInlineLimit: 1 << 20, reportCompressedSize: false,
  },
});
