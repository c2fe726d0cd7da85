// Looks at the page that `anabranch lab` has inside, in Chromium: node served.mjs CHROMIUM ADDRESS EXPECTED
// EXPECTED is a file: build, digest of a run, and a scenario that is dropped as a capture.
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const [program, address, file] = process.argv.slice(2);
const expected = JSON.parse(readFileSync(file, "utf8"));
const failures = [];
const check = (holds, what) => { if (!holds) failures.push(what); };

const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"] });
const context = await browser.newContext({ reducedMotion: "reduce" });

async function opened(fragment) {
  const it = await context.newPage();
  it.on("console", (said) => { if (["error", "warning"].includes(said.type())) failures.push(`${fragment}: the console says: ${said.text()}`); });
  it.on("pageerror", (error) => failures.push(`${fragment}: ${error.stack ?? error}`));
  it.on("request", (request) => check(request.url().startsWith(address) || /^(blob|data):/.test(request.url()), `${fragment}: asks for ${request.url()}`));
  await it.goto(address + fragment);
  await it.waitForFunction(() => !document.getElementById("loading"), null, { timeout: 60_000 });
  return it;
}
const done = (it) => it.waitForFunction(() => document.querySelector(".status")?.hidden === true && document.querySelector(".results")?.childElementCount > 0, null, { timeout: 300_000 });

{
  const it = await opened("");
  check(await it.locator(".cards a").count() === 6, `${await it.locator(".cards a").count()} lessons are listed`);
  check((await it.locator("#version").textContent()).endsWith(`(build ${expected.build})`), `the build: ${await it.locator("#version").textContent()}`);
  check(/program that serves this page/.test(await it.locator("#where").textContent()), "the page says that the simulator is in it");
  check((await it.locator("#licences").textContent()).length > 1000, "the licences are missing");
  await it.close();
}
{
  const it = await opened("#lab?name=wlan-lte&seed=3&do=run");
  await done(it);
  check((await it.locator(".digest").textContent()).endsWith(expected.digest), "the digest of the run is not the command's");
  for (const figure of await it.locator("figure:visible").all()) await figure.scrollIntoViewIfNeeded();
  await it.waitForFunction(() => document.querySelectorAll("figure .chart.drawn").length > 0, null, { timeout: 60_000 });
  // A mistake is shown while it is typed: requests of two engines are answered at the same time.
  await it.locator(".bench .editor textarea").fill("[path.a]\nrat = 1\n");
  await it.waitForFunction(() => document.querySelector(".bench .mistake b"));
  check(/line 2/.test(await it.locator(".bench .mistake").textContent()), "a mistake has no line");
  await it.close();
}
{
  const it = await opened("#lab?name=wlan-lte&repeat=1000&do=compare");
  await it.waitForFunction(() => /of [\d,]+ runs/.test(document.querySelector(".status")?.textContent ?? ""), null, { timeout: 60_000 });
  await it.getByRole("button", { name: "Stop" }).click();
  await it.waitForFunction(() => document.querySelector(".status")?.hidden === true, null, { timeout: 10_000 });
  await it.close();
}
{
  const it = await opened("#capture");
  await it.locator("input[type=file]").setInputFiles({ name: "mine.toml", mimeType: "application/toml", buffer: Buffer.from(expected.scenario) });
  await it.waitForSelector(".results .warning");
  const said = await it.locator(".results .warning").textContent();
  check(/mine\.toml is a scenario, not a capture/.test(said) && /Open file/.test(said), `a scenario as a capture: ${said}`);
  await it.close();
}
await browser.close();
if (failures.length > 0) {
  console.log(failures.join("\n"));
  process.exit(1);
}
console.log("all checks hold");
