// Looks at the laboratory in Chromium, from disk: node check.mjs CHROMIUM PAGE FOLDER
// FOLDER has expected.json (what the native simulator gives) and captures; screenshots go there.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [program, page, folder] = process.argv.slice(2);
const expected = JSON.parse(readFileSync(join(folder, "expected.json"), "utf8"));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const failures = [];
const check = (holds, what) => { if (!holds) failures.push(what); };
const url = pathToFileURL(page).href;

// 1.6 MB is what a reader on a slow line bears; servers send pages compressed.
const size = gzipSync(readFileSync(page), { level: 9 }).length;
console.log(`the page: ${(readFileSync(page).length / 1e6).toFixed(2)} MB, compressed ${(size / 1e6).toFixed(2)} MB`);
check(size <= 1.6e6, `compressed, the page has ${size} bytes: more than 1.6 MB`);

const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, reducedMotion: "reduce" });

/// `blocked`: a script there tries what the page's policy blocks, which the console may say, and which has no response.
async function opened(fragment, width = 1200, scheme = "light", blocked = false) {
  const it = await context.newPage();
  await it.setViewportSize({ width, height: 900 });
  await it.emulateMedia({ colorScheme: scheme });
  it.on("console", (said) => { if (["error", "warning"].includes(said.type()) && !(blocked && /Content Security Policy/.test(said.text()))) failures.push(`${fragment}: the console says: ${said.text()}`); });
  it.on("pageerror", (error) => failures.push(`${fragment}: ${error.stack ?? error}`));
  it.on(blocked ? "response" : "request", (request) => check(request.url().startsWith(url) || /^(blob|data):/.test(request.url()), `${fragment}: asks for ${request.url()}`));
  await it.goto(url + fragment);
  await it.waitForFunction(() => !document.getElementById("loading"), null, { timeout: 60_000 });
  return it;
}

/// Nobody is shut out: contrast, names, roles, order. The rules of WCAG 2.1 A and AA, and what axe calls good practice.
async function accessible(it, where) {
  // The page forbids scripts that it does not know; the tool comes in over the debugging protocol.
  await it.evaluate(`${axe}; undefined`);
  const { violations } = await it.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const skips = await it.evaluate(() => {
    const levels = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((it) => [Number(it.localName[1]), it.textContent]);
    return levels.filter(([level], n) => level > (levels[n - 1]?.[0] ?? 0) + 1).map(([level, text]) => `h${level} ${text}`);
  });
  check(skips.length === 0, `${where}: headings skip a level: ${skips}`);
  for (const { id, help, nodes } of violations) failures.push(`${where}: axe ${id}: ${help}: ${nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} ${node.failureSummary?.replaceAll("\n", " ")}`).join(" | ")}`);
}

async function narrow(it, where) {
  const widest = await it.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (widest <= 0) return;
  const culprits = await it.evaluate(() => [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !e.closest(".wide")).slice(0, 4).map((e) => e.outerHTML.slice(0, 120)));
  failures.push(`${where}: scrolls sideways by ${widest} px: ${culprits.join(" | ")}`);
}

const shot = (it, name) => it.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
const done = (it) => it.waitForFunction(() => document.querySelector(".status")?.hidden === true && document.querySelector(".results")?.childElementCount > 0, null, { timeout: 300_000 });
/// Figures are drawn when they come into view.
async function drawn(it) {
  for (const figure of await it.locator("figure:visible").all()) await figure.scrollIntoViewIfNeeded();
  await it.waitForFunction(() => [...document.querySelectorAll("figure .chart")].every((chart) => !chart.checkVisibility() || chart.classList.contains("drawn")), null, { timeout: 60_000 });
  await it.evaluate(() => scrollTo(0, 0));
}

/// Parts of the page are looked at two at a time: the browser draws each on one processor.
const waiting = [];
const queue = (look) => { waiting.push(look); };
async function workOff() {
  for (let next = waiting.shift(); next; next = waiting.shift()) await next();
}

// Lessons.
queue(async () => {
  const it = await opened("");
  const links = await it.locator(".cards a").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
  check(links.length === 6, `${links.length} lessons are listed`);
  await accessible(it, "lessons");
  await shot(it, "lessons");
  for (const link of links) {
    await it.goto(url + link);
    await done(it);
    check(await it.locator(".warning").count() === 0, `${link}: ${await it.locator(".warning").allTextContents()}`);
    await drawn(it);
    const dots = await it.locator("#figure-result .chart svg path[aria-roledescription='point']").count();
    check(dots >= 3, `${link}: its figure has ${dots} dots`);
    await accessible(it, link);
    await shot(it, link.replace(/\W+/g, "-").slice(1));
    const before = await it.locator("#figure-result").innerHTML();
    await it.locator(".changes select").first().selectOption({ index: 1 });
    await it.waitForFunction(() => document.querySelector(".status")?.hidden === false, null, { timeout: 10_000 }).catch(() => undefined);
    await done(it);
    await drawn(it);
    check(await it.locator("#figure-result").innerHTML() !== before, `${link}: changing a setting changes no figure`);
  }
  await it.close();
});

// The laboratory, with the keyboard where a reader would use it.
queue(async () => {
  const it = await opened("#lab?name=wlan-lte&seed=3");
  await it.waitForSelector(".bench .mistake .fine");
  const area = it.locator(".bench .editor textarea");
  await area.focus();
  await it.keyboard.press("Control+Home");
  await it.keyboard.type("[host]\nsched");
  await it.waitForSelector(".completions:not([hidden]) li");
  check((await it.locator(".completions li").first().textContent()).startsWith("scheduler"), "no completion of `sched`");
  await it.keyboard.press("Enter");
  const values = await it.locator(".completions li").allTextContents();
  check(values.some((text) => text.startsWith('"late"')), `values of scheduler: ${values.slice(0, 5)}`);
  await it.keyboard.press("Escape");
  await it.waitForFunction(() => document.querySelector(".bench .mistake b"));
  check(/line 2/.test(await it.locator(".bench .mistake").textContent()), `a mistake without its line: ${await it.locator(".bench .mistake").textContent()}`);
  await accessible(it, "a mistake");
  await shot(it, "mistake");

  await it.locator("select").first().selectOption("wlan-lte");
  await it.waitForSelector(".bench .mistake .fine");
  await it.getByRole("button", { name: "Run once" }).click();
  await done(it);
  await drawn(it);
  check((await it.locator(".digest").textContent())?.endsWith(expected.run.digest), "the digest of the run is not the command's");
  const clock = () => it.locator(".clock").textContent();
  await it.getByRole("button", { name: "Step ▸" }).click();
  const first = await clock();
  await it.getByRole("button", { name: "Step ▸" }).click();
  check(await clock() > first, `a step does not move: ${first}`);
  await it.locator(".player input[type=range]").fill("500");
  check(/^0\.[1-9]/.test(await clock()), `scrubbed to ${await clock()}`);
  const middle = await clock();
  await it.getByRole("button", { name: "Play", exact: true }).click();
  await it.waitForFunction((before) => document.querySelector(".clock").textContent > before, middle);
  await it.getByRole("button", { name: "Pause" }).click();
  await accessible(it, "a run");
  await shot(it, "run");

  // From the middle on another scheduler; what was before stays as it was.
  await it.locator(".player select").last().selectOption("redundant");
  await it.getByRole("button", { name: "Run again" }).click();
  await it.waitForFunction((digest) => document.querySelector(".digest") && !document.querySelector(".digest").textContent.endsWith(digest), expected.run.digest);
  check(/scheduler = "redundant"/.test(await area.inputValue()), "the change is not in the scenario");
  await it.getByRole("button", { name: "Copy link" }).click();
  await it.waitForFunction(() => location.hash.includes("text="));
  const link = await it.evaluate(() => location.hash);
  const text = await area.inputValue();
  await it.close();

  const copy = await opened(link);
  await copy.waitForSelector(".bench .mistake .fine");
  check(await copy.locator(".bench .editor textarea").inputValue() === text, "a link does not bring the scenario");
  check(await copy.locator("input[type=number]").first().inputValue() === "3", "a link does not bring the seed");
  // A long comparison can be ended, and the next one works.
  await copy.locator("input[type=number]").nth(1).fill("1000");
  await copy.getByRole("button", { name: "Compare" }).click();
  await copy.getByRole("button", { name: "Stop" }).click();
  await copy.waitForFunction(() => document.querySelector(".status").hidden);
  await copy.locator("select").first().selectOption("wlan-lte");
  await copy.locator("input[type=number]").nth(1).fill("5");
  await copy.getByRole("button", { name: "Compare" }).click();
  await done(copy);
  await drawn(copy);
  check(await copy.locator(".grid tbody tr").count() > 7, "a comparison without its ranking");
  await copy.locator(".grid th button").nth(1).click();
  check(await copy.locator('.grid th[aria-sort="ascending"]').count() === 1, "a ranking that does not sort");
  await accessible(copy, "a comparison");
  await shot(copy, "comparison");
  await copy.getByRole("button", { name: "Why so slow?" }).click();
  await copy.waitForSelector(".sentence", { timeout: 120_000 });
  check((await copy.locator(".sentence").textContent()) === expected.why, `why says: ${await copy.locator(".sentence").textContent()}`);
  await accessible(copy, "why");
  await shot(copy, "why");

  // Every scheduler, ten seeds: how long it takes is told, not judged, since machines differ.
  const begun = Date.now();
  const all = await copy.evaluate((text) => window.anabranch({ do: "compare", source: { name: "wlan-lte", text, sets: [] }, schedulers: [], seed: 1, repeat: 10 }), expected.wlan);
  console.log(`${all.summary.ranking.length} schedulers x 10 seeds of wlan-lte: ${((Date.now() - begun) / 1000).toFixed(1)} s`);
  for (const [n, { source, seeds, digest, events }] of expected.digests.entries()) {
    const found = await copy.evaluate(([source, seeds]) => window.anabranch({ do: "digests", source, seeds }), [source, seeds]);
    check(found.scenario === digest && JSON.stringify(found.events) === JSON.stringify(events), `${n}, ${source.name}: digests ${found.events}, the command's are ${events}`);
  }
  console.log(`${expected.digests.length} scenarios have the digests of the command`);
  await copy.close();
});

// A scheduler that is written in the page.
queue(async () => {
  const it = await opened("#lab?name=wlan-lte&seed=3&repeat=2", 1200, "light", true);
  await it.waitForSelector(".bench .mistake .fine");
  const digests = (scheduler, script, seeds = [1, 2, 3], sets = []) => it.evaluate(async ([text, scheduler, script, seeds, more]) => {
    try {
      const source = { name: "wlan-lte", text, sets: [`host.scheduler=${scheduler}`, ...more] };
      return (await window.anabranch({ do: "digests", source, seeds }, script ?? undefined)).events;
    } catch (error) {
      return error.trouble ?? { problem: String(error) };
    }
  }, [expected.wlan, scheduler, script ?? null, seeds, sets]);
  await it.locator(".own > summary").click();
  const area = it.locator(".own textarea");
  const minRtt = await area.inputValue();
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const own = await digests("own", minRtt);
  check(Array.isArray(own) && same(own, await digests("min-rtt")), `min-rtt in JavaScript gives ${JSON.stringify(own)}`);
  // Otherwise the end is insured by copies already.
  const bare = ["host.reinjection=none"];
  const plain = await digests("min-rtt", undefined, [1, 2, 3], bare);
  for (const example of ["one that waits", "copies"]) {
    await it.locator(".own select").selectOption(example);
    const found = await digests("own", await area.inputValue(), [1, 2, 3], bare);
    check(Array.isArray(found) && !same(found, plain), `${example}: ${JSON.stringify(found)}`);
  }
  // Chance is of the seed, and all else is of the script.
  const chance = "let n = 0;\nfunction observe(now, event) { if (event.kind === 'sent') n++; }\nfunction decide(now, view) {\n  const free = view.subflows.filter((it) => it.has_room);\n  return free[Math.floor((Math.random() + n) * free.length) % free.length] ?? null;\n}";
  const chances = await digests("own", chance, [1, 1, 2]);
  check(chances[0] === chances[1] && chances[0] !== chances[2], `seeds 1, 1 and 2 give ${JSON.stringify(chances)}`);
  check(same(chances, await digests("own", chance, [1, 1, 2])), "a second worker gives another run");

  const decide = (body) => `function decide(now, view) {\n  ${body}\n}`;
  const place = { text: "the scheduler `own`", line: 2 };
  for (const [script, problem, where = {}] of [
    [decide("return view.subflows[0].rtt.min;"), /^the scheduler `own` failed \d+\.\d{6} s into the run: TypeError: .*undefined/, place],
    [decide("return Date.now() % 2;"), /ReferenceError: `Date` is not here: the first argument of decide is the time/, place],
    [decide("return fetch('https://example.net/');"), /ReferenceError: `fetch` is not here/, place],
    [decide("return globalThis.x ?? null;"), /ReferenceError: `globalThis` is not here/, place],
    [decide("return (function () {}).constructor('return 1')();"), /EvalError/, place],
    [decide("return send(view.subflows[0], -1);"), /TypeError: send: skip_bytes is -1; accepted: a whole number of bytes/, place],
    [decide("return repeat(0, 1);"), /TypeError: repeat: from_dsn is 1; accepted: a data sequence number/, place],
    [decide("return wait(-1);"), /TypeError: wait: until_s is -1; accepted: seconds of the run/, place],
    [decide("throw 'enough';"), /it threw "enough"$/],
    [decide("return 'fast';"), /^the scheduler `own` answered "fast" \d+\.\d{6} s into the run, which is no decision$/, { help: /^accepted: a subflow of the view, its id, null to wait/ }],
    [decide("view.fastest();"), /answered nothing \(undefined\)/],
    [decide("return 7;"), /answered the subflow 7 .* which is not in the view$/, { help: /^accepted: 0, 1$/ }],
    [decide("return view;"), /answered .* which is no decision$/],
    [decide("return decide(now, view);"), /RangeError: Maximum call stack/, { text: place.text }],
    ["const x = 1;", /^the scheduler `own` has no function `decide`$/],
    ["const repeats = 3; const decide = () => null;", /`repeats` of the scheduler `own` is 3/],
    [decide("return (;"), /^SyntaxError/, place],
    ["} self.postMessage(1); {", /^SyntaxError/],
  ]) {
    const found = await digests("own", script);
    const holds = problem.test(found.problem) && Object.entries(where).every(([key, value]) => (value.test ? value.test(found[key]) : found[key] === value));
    check(holds, `${script}: ${JSON.stringify(found)}`);
  }
  check(same(own, await digests("own", minRtt)), "after a failure the next request is not as before");
  // What waits for ever ends: the engine overrules it.
  check(Array.isArray(await digests("own", decide("return wait();"))), "a scheduler that only waits does not end");
  // What is left of the language that could reach out, the page's policy blocks.
  let asked = 0;
  const server = createServer((_, response) => { asked++; response.end(); }).listen(0, "127.0.0.1");
  await new Promise((listens) => server.once("listening", listens));
  const imports = decide(`import("http://127.0.0.1:${server.address().port}/x.js").catch(() => 0); return view.fastest_with_room();`);
  check(Array.isArray(await digests("own", imports)), "an import that the page blocks ends the run");
  await it.waitForTimeout(500);
  check(asked === 0, `a script has asked ${asked} times over the network`);
  server.close();

  // By the reader's hand.
  const compare = it.getByRole("button", { name: "Compare" });
  await it.locator(".controls details > summary").click();
  await it.locator('.schedulers input[value="own"]').check();
  // What is typed is read after the run only, as on a busy machine.
  const fails = async (typed) => {
    await it.evaluate(() => {
      const after = window.setTimeout, late = [];
      window.setTimeout = (act, time, ...words) => (time === 200 ? late.push(act) : after(act, time, ...words));
      window.read = () => { window.setTimeout = after; late.forEach((act) => act()); };
    });
    await area.fill(decide("return slow;"));
    await compare.click();
    if (typed) await area.fill(typed);
    await it.waitForFunction(() => !document.querySelector(".results").hasAttribute("aria-busy"));
    await it.evaluate(() => window.read());
    await it.waitForTimeout(500);
  };
  await fails(decide("return (;"));
  check(/SyntaxError/.test(await it.locator(".own .mistake").textContent()), "what has been typed during a run is not read");
  await fails();
  check(/^the scheduler `own`, line 2, column \d+: the scheduler `own` failed .* ReferenceError: slow is not defined/.test(await it.locator(".results .warning").textContent()), `a failure is shown as: ${await it.locator(".results").textContent()}`);
  check(/line 2/.test(await it.locator(".own .mistake").textContent()), "a failure is not shown at its script");
  await accessible(it, "a failure of a script");
  await shot(it, "own-failure");
  await area.fill(decide("while (true);"));
  await compare.click();
  await it.waitForFunction(() => /does not return, Stop ends it/.test(document.querySelector(".status").textContent), null, { timeout: 20_000 });
  await it.getByRole("button", { name: "Stop" }).click();
  await it.waitForFunction(() => document.querySelector(".status").hidden);
  await it.locator(".own select").selectOption("min-rtt");
  await compare.click();
  await it.waitForSelector(".results .grid tbody tr");
  await drawn(it);
  check((await it.locator(".results .grid").first().locator("td").allTextContents()).some((cell) => cell.trim() === "own"), "the ranking lacks the scheduler of the page");
  await accessible(it, "a scheduler of the page");
  await shot(it, "own");
  await it.getByRole("button", { name: "Copy link" }).click();
  await it.waitForFunction(() => location.hash.includes("own="));
  const link = await it.evaluate(() => location.hash);
  await it.close();

  // From a link, it is somebody else's: it waits for the reader.
  const copy = await opened(`${link}&do=compare`);
  await copy.waitForSelector(".bench .mistake .fine");
  check(await copy.locator(".own .warning").isVisible(), "a script from a link is not told to be somebody else's");
  check(await copy.locator(".own textarea").inputValue() === minRtt, "a link does not bring the script");
  await copy.waitForTimeout(1000);
  check(await copy.locator(".results").evaluate((it) => it.childElementCount) === 0 && await copy.locator(".status").isHidden(), "a script from a link runs by itself");
  await accessible(copy, "a script from a link");
  await shot(copy, "own-link");
  await copy.getByRole("button", { name: "Compare" }).click();
  await copy.waitForSelector(".results .grid tbody tr");
  check(await copy.locator(".own .warning").isHidden(), "the notice stays");
  // In the middle of a run.
  await copy.getByRole("button", { name: "Run once" }).click();
  await copy.waitForSelector(".player");
  await copy.locator(".player select").last().selectOption("own");
  await copy.getByRole("button", { name: "Run again" }).click();
  await copy.waitForFunction(() => /"own"/.test(document.querySelector(".bench .editor textarea").value) && document.querySelector(".status").hidden);
  check(await copy.locator(".digest").count() === 1, `a change to own: ${await copy.locator(".results").textContent()}`);
  await copy.close();
});

// A capture.
queue(async () => {
  const it = await opened("#capture");
  await accessible(it, "capture");
  await it.locator("input[type=file]").setInputFiles(expected.captures.map((name) => join(folder, name)));
  await it.waitForSelector(".sentence", { timeout: 60_000 });
  check((await it.locator(".sentence").textContent()) === expected.capture, `the capture: ${await it.locator(".sentence").textContent()}`);
  await accessible(it, "a capture");
  await shot(it, "capture");
  await it.locator("input[type=file]").setInputFiles(join(folder, "expected.json"));
  await it.waitForFunction(() => /neither pcap nor pcapng/.test(document.querySelector(".results").textContent));
  await it.close();
});

// The papers' figures.
queue(async () => {
  const it = await opened("#papers");
  await it.waitForSelector(".figures-of");
  const links = await it.locator(".figures-of a").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
  check(links.length === 39 && await it.locator("main h2").count() === 5, `${links.length} figures of papers are listed`);
  await accessible(it, "papers");
  await shot(it, "papers");
  // To the byte, but for the name of the program that made them.
  for (const { study, result } of expected.studies) {
    const found = await it.evaluate((study) => window.anabranch({ do: "study", study }), study);
    const [ours, theirs] = [found.result, result].map((it) => JSON.stringify({ ...it, build: "" }));
    const differs = [...ours].findIndex((letter, n) => letter !== theirs[n]);
    check(ours === theirs, `${study.name}: the page has ${ours.slice(Math.max(0, differs - 80), differs + 40)}, the command ${theirs.slice(Math.max(0, differs - 80), differs + 40)}`);
    check(found.command === result.command, `${study.name}: the command is ${found.command}`);
  }
  console.log(`${expected.studies.length} studies have the results of the command`);

  // By the keyboard, from the list to the first figures.
  await it.locator('.figures-of a[href="#paper/late/fig10"]').focus();
  await it.keyboard.press("Enter");
  await it.waitForSelector(".paper-figure");
  const size = () => it.locator(".paper-figure > p[aria-live]").textContent();
  check(/^36 runs: 4 systems at 3 points, 3 repetitions each/.test(await size()), `at first: ${await size()}`);
  await it.getByLabel("Points").selectOption("all");
  check(/^960 runs: 4 systems at 8 points, 30 repetitions each/.test(await size()), `all points: ${await size()}`);
  await it.getByLabel("Points").selectOption("some");
  await it.locator(".paper-figure > details > summary").evaluateAll((all) => all.forEach((summary) => summary.click()));
  await accessible(it, "a figure of a paper");
  await shot(it, "paper-figure");
  // Figures grow, and stay when the study is stopped.
  await it.getByLabel("Repetitions").fill("200");
  await it.getByRole("button", { name: "Run it" }).focus();
  await it.keyboard.press("Enter");
  await it.waitForSelector(".results .figures .chart.drawn", { timeout: 60_000 });
  const first = await it.locator("#figure-a .chart").innerHTML();
  check(await it.locator(".results h2").textContent() === "What has come out so far" && await it.locator(".statements").count() === 0, "figures of a part of the runs pass for all");
  await accessible(it, "a study under way");
  await it.waitForFunction((first) => document.querySelector("#figure-a .chart").innerHTML !== first, first, { timeout: 60_000 });
  await shot(it, "paper-under-way");
  await it.getByRole("button", { name: "Stop" }).click();
  await it.waitForFunction(() => document.querySelector(".status").hidden);
  check(/^From \d+ of 2,400 runs/.test(await it.locator(".results .quiet").first().textContent()) && await it.locator("#figure-a .chart svg").count() === 1, "a stopped study loses its figures");

  // Another assumption, and one that is wrong.
  await it.getByLabel("Repetitions").fill("2");
  const overrides = it.getByLabel("Overrides, one a line");
  await overrides.fill("host.congestoin=cubic");
  await it.getByRole("button", { name: "Run it" }).click();
  await it.waitForSelector(".results .warning b");
  check(/^--set, line 1, column 1: unknown key `congestoin`|^--set, line 1, column \d+: .*congestoin/.test(await it.locator(".results .warning").textContent()), `a wrong override is shown as: ${await it.locator(".results .warning").textContent()}`);
  await overrides.fill("run.stop=60s");
  await it.getByLabel("Another assumption").selectOption("CUBIC on each subflow");
  check(await overrides.inputValue() === "run.stop=60s\nhost.congestion=cubic", `the overrides are ${await overrides.inputValue()}`);
  await it.getByRole("button", { name: "Run it" }).click();
  await it.waitForSelector(".results .statements", { timeout: 300_000 });
  await drawn(it);
  const sets = " --set run.stop=60s --set host.congestion=cubic";
  check(await it.locator(".results .code pre").textContent() === `anabranch study late/fig10 --quick --repeat 2${sets}`, `the command is ${await it.locator(".results .code pre").textContent()}`);
  check(await it.locator(".results .statements tbody > tr").count() === 18 && await it.locator(".results .statements td:last-child .verdict").count() === 18, "not every statement has a verdict");
  check(/Overridden: run.stop=60s, host.congestion=cubic/.test(await it.locator(".results .warning").allTextContents()), "results do not say what was overridden");
  await it.locator(".results details.more > summary").click();
  check(await it.locator(".results .grid tbody tr").count() >= 15, "the numbers are not in tables");
  await accessible(it, "a study");
  await shot(it, "paper-done");

  await it.getByRole("button", { name: "Copy link" }).click();
  await it.waitForFunction(() => location.hash.includes("set="));
  const link = await it.evaluate(() => location.hash);
  await it.getByLabel("System", { exact: true }).selectOption("LATE");
  await it.getByLabel("File size", { exact: true }).selectOption("500 kB");
  await it.getByRole("button", { name: "Open it in the laboratory" }).click();
  await it.waitForSelector(".bench .mistake .fine");
  const text = await it.locator(".bench .editor textarea").inputValue();
  check(text.startsWith("# late/fig10: LATE, size 500 kB\n") && /congestion = "cubic"/.test(text) && /size = "500kB"/.test(text), `the laboratory has ${text}`);
  check(/paths wlan, cell; scheduler late \(.*phase_aware=true/.test(await it.locator(".bench .mistake").textContent()), `the laboratory says ${await it.locator(".bench .mistake").textContent()}`);
  await it.close();

  const copy = await opened(link);
  await copy.waitForSelector(".paper-figure");
  check(await copy.getByLabel("Overrides, one a line").inputValue() === "run.stop=60s\nhost.congestion=cubic" && await copy.getByLabel("Repetitions").inputValue() === "2", `the link ${link} brings less than it had`);
  check(await copy.locator(".results").evaluate((it) => it.childElementCount) === 0, "a study from a link runs by itself");
  await copy.goto(`${url}#paper/late/fig99`);
  await copy.waitForFunction(() => /there is no study `late\/fig99`/.test(document.querySelector("main").textContent));
  await copy.close();
});

// A telephone, and darkness.
for (const [width, scheme] of [[360, "light"], [1200, "dark"], [360, "dark"]]) {
  for (const fragment of ["", "#lesson/small-buffer", "#lab?name=wlan-lte&seed=1&do=run", "#lab?name=wlan-lte&seed=1&repeat=3&do=compare", "#lab?name=wlan-lte&repeat=2&do=why", "#capture", "#papers", "#paper/lowlat/fig08?repeat=1&do=run", "#lab?name=wlan-lte&own=S87PKy5RSElNzkxJVbBV0MjLL9dRKMtMLddUsLUDM_TSEotLUotL4sszSzLii_LzczU0rbkA"]) {
    queue(async () => {
      const it = await opened(fragment, width, scheme);
      if (/lesson|do=/.test(fragment)) await done(it);
      if (fragment === "#papers") await it.waitForSelector(".figures-of");
      await drawn(it);
      const where = `${fragment}, ${width} px, ${scheme}`;
      await narrow(it, where);
      if (scheme === "dark") await accessible(it, where);
      await shot(it, `${fragment.replace(/\W+/g, "-") || "lessons"}-${width}-${scheme}`);
      await it.close();
    });
  }
}

await Promise.all([workOff(), workOff()]);
await browser.close();
for (const failure of failures) console.log(`FAILS ${failure}`);
if (failures.length > 0) process.exit(1);
console.log("all checks hold");
