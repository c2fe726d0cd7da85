// Looks at pages with Chromium: `node check.mjs CHROMIUM FOLDER`. FOLDER holds study.html, many.html, hostile.html, run.html,
// comparison.html, comparison-all.html, leaderboard.html, why.html and why-scenario.html; what is exported and screenshots go there too. Prints a line per check; exit status 1 if one fails.
import { chromium } from "playwright-core";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { inflateSync } from "node:zlib";

const [executablePath, folder] = process.argv.slice(2);
mkdirSync(path.join(folder, "exports"), { recursive: true });
let failed = 0;

function check(holds, what, but = "") {
  console.log(`${holds ? "ok    " : "FAILED"} ${what}${holds || but === "" ? "" : `: ${but}`}`);
  if (!holds) failed += 1;
}

// The sandbox of Chromium cannot be had as root.
const ARGS = process.getuid() === 0 ? ["--no-sandbox"] : [];
const browser = await chromium.launch({ executablePath, args: ARGS });

/// Opens a page from disk and notes all that it should not do. `run` may scroll, click and look.
async function visit(name, options, run) {
  const context = await browser.newContext({ acceptDownloads: true, offline: true, ...options });
  const page = await context.newPage();
  const complaints = [], requests = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) complaints.push(message.text()); });
  page.on("pageerror", (error) => complaints.push(error.message));
  const url = `file://${path.resolve(folder, name)}`;
  page.on("request", (request) => { if (request.url() !== url && !/^(data|blob):/.test(request.url())) requests.push(request.url()); });
  // Many figures take their time where others work, too.
  await page.goto(url, { timeout: 120_000 });
  await run(page);
  check(complaints.length === 0, `${name}: nothing on the console`, complaints.join("; "));
  check(requests.length === 0, `${name}: asks for nothing`, requests.join("; "));
  await context.close();
}

/// Looks at pages, two of them at a time: the browser draws each on one processor.
const waiting = [];
const queue = (look, ...of) => { waiting.push(() => look(...of)); };
async function workOff() {
  for (let next = waiting.shift(); next; next = waiting.shift()) await next();
}

const figures = (page) => page.locator("figure[data-section]");
const undrawn = (page) => page.evaluate(() => document.querySelectorAll(".chart:not(.drawn)").length);
const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
const drawing = (figure) => figure.locator(".chart").innerHTML();
/// Headings that skip a level: who listens to a page finds its way by them.
const skipping = (page) => page.evaluate(() => {
  let last = 0;
  return [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].filter((it) => {
    const level = Number(it.localName[1]), skips = level > last + 1;
    last = level;
    return skips;
  }).map((it) => it.outerHTML.slice(0, 80)).join(" | ");
});
const shot = (page, name) => page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true });

async function download(page, figure, kind) {
  const waiting = page.waitForEvent("download", { timeout: 20_000 });
  await figure.locator(`button[data-export=${kind}]`).click();
  const got = await waiting;
  // A page that another visit looks at saves to the same names.
  const bytes = readFileSync(await got.path());
  await got.saveAs(path.join(folder, "exports", got.suggestedFilename()));
  return [got.suggestedFilename(), bytes];
}

const WIDE = { viewport: { width: 1200, height: 900 }, colorScheme: "light" };

async function looksRight(name, kinds) {
  await visit(`${name}.html`, WIDE, async (page) => {
    check((await figures(page).count()) > 0 && (await undrawn(page)) === 0, `${name}: all figures are drawn when the page has loaded`);
    for (const figure of await figures(page).all()) {
      const title = await figure.locator("h3").innerText();
      const blank = await figure.locator(".chart").evaluate((chart) => {
        const svg = chart.querySelector("svg"), canvas = chart.querySelector("canvas");
        if (svg) return svg.querySelectorAll(".mark-line path, .mark-rect path, .mark-symbol path, .mark-rule line").length === 0;
        const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return !pixels.some((value) => value !== 0);
      });
      check(!blank, `${name}: something is in "${title}"`);
    }
    check((await overflow(page)) <= 0, `${name}: nothing sticks out at 1200 px`);
    const skips = await skipping(page);
    check(skips === "", `${name}: no heading skips a level`, skips);
    const nameless = await page.locator("button:visible").evaluateAll((all) => all.filter((it) => !it.textContent.trim() && !it.ariaLabel).length);
    check(nameless === 0, `${name}: each button has a name`, `${nameless} have none`);
    await shot(page, `${name}-light`);

    for (const figure of await figures(page).all()) {
      for (const kind of kinds) {
        const [file, bytes] = await download(page, figure, kind);
        const text = bytes.toString("utf8");
        if (kind === "svg") check(/^<svg[^>]*xmlns/.test(text) && text.endsWith("</svg>") && text.length > 2000, `${file} is a drawing`, text.slice(0, 80));
        if (kind === "png") check(bytes.subarray(1, 4).toString() === "PNG" && bytes.readUInt32BE(16) >= 1200, `${file} is a picture of ${bytes.readUInt32BE(16)} x ${bytes.readUInt32BE(20)}`);
        if (kind === "csv") check(text.startsWith("series,origin,panel,category,") && text.split("\r\n").length > 2, `${file} has rows`, text.slice(0, 80));
      }
    }
  });
  await visit(`${name}.html`, { viewport: { width: 1200, height: 900 }, colorScheme: "dark" }, async (page) => {
    await shot(page, `${name}-dark`);
  });
  await visit(`${name}.html`, { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, colorScheme: "light" }, async (page) => {
    check((await overflow(page)) <= 0, `${name}: nothing sticks out at 360 px`, `${await overflow(page)} px do`);
    const cut = await page.evaluate(() => [...document.querySelectorAll(".chart svg")].filter((svg) => svg.getBoundingClientRect().right > innerWidth).length);
    check(cut === 0, `${name}: no figure is wider than the phone`);
    await shot(page, `${name}-phone`);
  });
}

queue(looksRight, "study", ["svg", "png", "csv"]);
queue(looksRight, "run", ["svg"]);
queue(looksRight, "comparison", ["svg"]);
queue(looksRight, "comparison-all", []);
queue(looksRight, "leaderboard", ["svg"]);

queue(visit, "study.html", WIDE, async (page) => {
  // One is switched off, and back on.
  const figure = figures(page).first();
  const before = await drawing(figure);
  const button = figure.locator(".legend button").first();
  await button.click();
  const without = await drawing(figure);
  check(without !== before && without.length < before.length, "a click on the legend takes the series away");
  check((await button.getAttribute("aria-pressed")) === "false", "the legend says so");
  const [, exported] = await download(page, figure, "svg");
  check(!exported.toString("utf8").includes(`>${(await button.innerText()).trim()}<`), "the export has only what is shown");
  await button.click();
  check((await drawing(figure)) === before, "another click brings it back");
  await button.click({ modifiers: ["Shift"] });
  check((await figure.locator('.legend button[aria-pressed="true"]').count()) === 1, "shift and click leave one alone");

  // Pointing shows value, interval and repetitions.
  const second = figures(page).nth(1);
  await second.scrollIntoViewIfNeeded();
  await second.locator(".chart .mark-symbol path").first().hover();
  const tip = await page.locator("#tip").innerText();
  check(/95 % interval/.test(tip) && /repetitions/.test(tip) && /%/.test(tip), "a tooltip has value, interval and n", tip);

  // Light and dark.
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const ink = () => second.locator(".chart svg text").first().getAttribute("fill");
  const [lightGround, lightInk] = [await background(), await ink()];
  await page.locator("#theme").click();
  check((await background()) !== lightGround && (await ink()) !== lightInk, "dark changes the page and the figures");
  await page.locator("#theme").click();
  check((await background()) === lightGround && (await ink()) === lightInk, "and light changes them back");

  // Copying.
  await page.locator(".copy").last().click();
  await page.locator(".copy", { hasText: "Copied" }).waitFor({ timeout: 2000 }).then(() => check(true, "the command can be copied"), () => check(false, "the command can be copied"));
});

// Distributions beside means, and a ranking of all schedulers on a phone.
const texts = (figure) => figure.locator(".chart svg text").evaluateAll((all) => all.map((text) => {
  const { left, right, top, bottom } = text.getBoundingClientRect();
  return { text: text.textContent, left, right, top, bottom, size: parseFloat(getComputedStyle(text).fontSize) };
}));
queue(visit, "comparison-all.html", { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, colorScheme: "light" }, async (page) => {
  const ranking = figures(page).first();
  const names = await page.locator(".grid table").first().locator("tbody td:nth-child(2)").allInnerTexts();
  const said = await texts(ranking);
  const shown = names.filter((name) => !/^plain TCP|^sum/.test(name)).map((name) => said.find((it) => it.text === name));
  check(shown.length === 30 && shown.every((it) => it && it.size >= 12 && it.left >= 0 && it.right <= 360), "30 names of a ranking are whole at 360 px", JSON.stringify(shown.map((it) => it?.text)));
  check(shown.every((it, n) => n === 0 || it.top >= shown[n - 1].bottom - 4), "from the best downwards, each on a line of its own");
  const marks = (role) => ranking.locator(`.chart .mark-${role} [aria-roledescription]`).count();
  check((await ranking.locator('.chart [aria-roledescription="bar"]').count()) === 0, "there are no bars");
  check((await ranking.locator('.chart [aria-roledescription="point"]').count()) === 33, "a dot for each mean", `${await marks("symbol")}`);
  check((await ranking.locator('.chart .mark-rect.role-mark path[opacity="0.4"]').count()) === 10 * 32, "and a stroke for each repetition", `${await ranking.locator('.chart .mark-rect.role-mark path[opacity="0.4"]').count()}`);
  const distribution = figures(page).nth(1);
  check((await distribution.locator("h3").innerText()) === "Distribution of the repetitions", "the distribution stands below it");
  const drawn = await distribution.locator('.legend button[aria-pressed="true"]').allInnerTexts();
  check(drawn.length >= 4 && drawn.length <= 5 && drawn.includes("min-rtt") && drawn.includes("TCP on wlan"), "with the best, the last, the reference and plain TCP at first", drawn.join(", "));
  check((await distribution.locator(".legend button").count()) === 32, "and all others at hand");
});

// Tables: by keys, and as a screen reader has it.
queue(visit, "comparison-all.html", WIDE, async (page) => {
  const box = page.locator(".grid").first();
  const column = async (n) => (await box.locator(`tbody tr:visible td:nth-child(${n})`).allInnerTexts()).map((text) => parseFloat(text));
  const head = box.locator("th").nth(2);
  const before = await box.locator("tbody").innerText();
  check((await head.getAttribute("scope")) === "col" && (await head.getAttribute("aria-sort")) === null, "a table is not sorted at first");
  await head.locator("button").focus();
  await page.keyboard.press("Enter");
  const up = await column(3);
  check((await head.getAttribute("aria-sort")) === "ascending" && up.length === 33 && up.every((it, n) => n === 0 || it >= up[n - 1]), "a key sorts it by numbers and says so", up.join(" "));
  await page.keyboard.press("Space");
  check((await head.getAttribute("aria-sort")) === "descending" && (await column(3))[0] === Math.max(...up), "again, downwards");
  await box.locator("th").nth(1).locator("button").click();
  const words = await box.locator("tbody td:nth-child(2)").allInnerTexts();
  check((await box.locator("th[aria-sort]").count()) === 1 && words[0] === "anabranch", "another column takes its place", words[0]);
  await box.locator("th").nth(1).locator("button").click();
  await box.locator("th").nth(1).locator("button").click();
  check((await box.locator("tbody").innerText()) === before, "the third press restores the order");
  const sizes = page.locator(".grid").nth(1);
  await sizes.locator("th", { hasText: "reinjected" }).locator("button").click();
  const factor = { B: 1, kB: 1e3, MB: 1e6 };
  const bytes = (await sizes.locator("tbody tr").evaluateAll((rows) => { const at = [...rows[0].closest("table").tHead.rows[0].cells].findIndex((cell) => /reinjected/.test(cell.textContent)); return rows.map((row) => row.cells[at].textContent); })).map((text) => parseFloat(text) * (factor[text.split(" ")[1]] ?? 1));
  check(bytes.every((it, n) => n === 0 || it >= bytes[n - 1]) && bytes.at(-1) > 1e5, "numbers count with their units", bytes.join(" "));
  await box.locator("input").fill("late");
  check((await box.locator("tbody tr:visible").count()) === 2 && (await box.locator("[role=status]").innerText()) === "2 of 33 rows", "a word leaves the rows that contain it", await box.locator("[role=status]").innerText());
  await box.locator("input").fill("");
  check((await box.locator("tbody tr:visible").count()) === 33, "and all of them come back");
});

// Zoom and pan: all figures over time show the same part.
queue(visit, "run.html", WIDE, async (page) => {
  const [cwnd, queue] = ["Congestion windows", "Queues in front"].map((title) => page.locator("figure", { has: page.locator("h3", { hasText: title }) }));
  const ticks = async (figure) => {
    const found = await figure.locator(".chart .role-axis-label").first().locator("text").allTextContents();
    return found.map(Number);
  };
  const whole = await ticks(cwnd), curves = (figure) => figure.locator(".chart .mark-line path").evaluateAll((all) => all.map((path) => path.getAttribute("d")).join());
  const drawn = [await curves(cwnd), await curves(queue)];
  const chart = cwnd.locator(".chart");
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  await page.mouse.move(box.x + 300, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + 500, box.y + 65, { steps: 4 });
  check(await chart.locator(".part").isVisible(), "what is drawn up is shaded");
  await page.mouse.up();
  await page.waitForTimeout(200);
  const part = await ticks(cwnd);
  check(Math.max(...part) - Math.min(...part) < 0.35 * (Math.max(...whole) - Math.min(...whole)) && Math.min(...part) > 0, "drawing up a part of the time shows it", part.join(" "));
  check((await ticks(queue)).join() === part.join(), "in the other figures, too", (await ticks(queue)).join());
  await chart.press("ArrowRight");
  await page.waitForTimeout(200);
  const later = await ticks(queue);
  check(Math.max(...later) > Math.max(...part), "an arrow key moves all", later.join(" "));
  await page.keyboard.down("Shift");
  await page.mouse.move(box.x + 300, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + 500, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  await page.waitForTimeout(200);
  check(Math.min(...(await ticks(queue))) < Math.min(...later), "with Shift the pointer moves them");
  const [, exported] = await download(page, cwnd, "svg");
  check(!exported.toString("utf8").includes(`>${Math.max(...whole)}<`), "an export has the part that is shown");
  await queue.locator('.view button[aria-label="the whole time"]').click();
  await page.waitForTimeout(200);
  check((await curves(cwnd)) === drawn[0] && (await curves(queue)) === drawn[1], "and a button shows all of it again");
});

// Of several panels, the one that the pointer is in.
queue(visit, "study.html", WIDE, async (page) => {
  const figure = page.locator("figure", { has: page.locator("h3", { hasText: "Out-of-order queue over time" }) });
  const ticks = () => figure.locator(".chart .role-axis-label").evaluateAll((all) => all.filter((it) => it.closest('[aria-label^="X-axis"]')).map((it) => [...it.querySelectorAll("text")].map((text) => Number(text.textContent))));
  const chart = figure.locator(".chart");
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  const whole = await ticks();
  // The second panel has the right half: from its middle to its end.
  await page.mouse.move(box.x + box.width * 0.77, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.95, box.y + 65, { steps: 4 });
  const shade = await chart.locator(".part").boundingBox();
  check(shade.x > box.x + box.width / 2 && shade.height < box.height, "what is drawn up is in its panel", JSON.stringify([shade, box]));
  await page.mouse.up();
  await page.waitForTimeout(200);
  const part = await ticks();
  check(whole.length === 2 && part.length === 2 && part.every((of) => Math.min(...of) > 10), "drawing up a part in one panel shows it in all", JSON.stringify([whole, part]));
  // Between panels and on axes nothing is meant.
  await page.mouse.move(box.x + 5, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.9, box.y + 60, { steps: 2 });
  await page.mouse.up();
  await page.waitForTimeout(200);
  check(JSON.stringify(await ticks()) === JSON.stringify(part), "what begins outside of the panels changes nothing");
});

// Panels over two properties.
queue(visit, "study.html", WIDE, async (page) => {
  const grid = page.locator("figure", { has: page.locator("h3", { hasText: "Completion time by RTT and loss" }) });
  const places = async () => (await texts(grid)).filter((it) => /^RTT, loss: /.test(it.text));
  const rows = new Map();
  for (const it of await places()) rows.set(it.text.split(" ")[2], [...(rows.get(it.text.split(" ")[2]) ?? []), it]);
  const [one, two] = [...rows.values()];
  check(rows.size === 2 && one.length === 3 && two.length === 3, "a row for each value of the first", [...rows.keys()].join());
  check(one.every((it, n) => it.bottom < two[n].top && Math.abs(it.left + it.right - two[n].left - two[n].right) < 40), "a column for each value of the second", JSON.stringify([one, two]));
  const axes = () => grid.locator(".chart .role-axis-label").evaluateAll((all) => new Set(all.map((it) => it.textContent)).size);
  check((await axes()) >= 5, "each has an axis of its own", `${await axes()}`);
  await grid.locator(".view button").click();
  check((await axes()) === 2 && (await grid.locator('.view button[aria-pressed="true"]').count()) === 1, "or the same, by a button", `${await axes()}`);
});

// On paper, from the top of the page: nothing was scrolled to.
queue(visit, "study.html", { viewport: { width: 1000, height: 400 }, colorScheme: "dark" }, async (page) => {
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  check((await undrawn(page)) === 0, "before printing all figures are drawn");
  check(!(await page.locator(".exports").first().isVisible()) && !(await page.locator("#theme").isVisible()), "paper has no buttons");
  check(await page.locator("details ul").first().isVisible(), "paper hides no details");
  const ground = await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--ground"));
  check(ground.trim() === "#ffffff", "paper is white", ground);
  await shot(page, "study-print");
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  await page.emulateMedia({ media: null });
  const pdf = await page.pdf({ path: path.join(folder, "study.pdf"), format: "A4", printBackground: true });
  check(pdf.subarray(0, 5).toString() === "%PDF-", "it can be printed");
});

// A transfer packet by packet.
const painted = (place) => place.locator("canvas").first().evaluate((canvas) => canvas.toDataURL());
/// Moves down the middle of the plot until the pointer is on a stroke; answers what is said there.
async function strokeUnder(page, over) {
  const box = await over.boundingBox();
  for (let y = 4; y < box.height; y += 5) {
    await page.mouse.move(box.x + box.width * 0.5, box.y + y);
    await page.waitForTimeout(30);
    if (await page.locator("#tip").isVisible()) return page.locator("#tip").innerText();
  }
  return "";
}
for (const name of ["why", "why-scenario"]) {
  for (const [size, options] of [["light", WIDE], ["dark", { ...WIDE, colorScheme: "dark" }], ["phone", { viewport: { width: 400, height: 800 }, deviceScaleFactor: 2, colorScheme: "dark" }]]) {
    queue(visit, `${name}.html`, options, async (page) => {
      await page.locator(".trace .u-over").first().waitFor({ timeout: 10_000 });
      check((await page.locator(".trace .plot").count()) === 3, `${name}, ${size}: data, limits and bytes in flight are drawn`);
      check((await overflow(page)) <= 0, `${name}, ${size}: nothing sticks out`, `${await overflow(page)} px do`);
      await shot(page, `${name}-${size}`);
    });
  }
}
queue(visit, "why-scenario.html", WIDE, async (page) => {
  const tried = await page.locator(".grid", { hasText: "With one thing changed" }).locator("tbody tr").count();
  const drawn = await figures(page).first().locator('.chart [aria-roledescription="point"]').count();
  check(drawn > 3 && drawn < tried, "changes are dots with intervals", `${drawn} dots, ${tried} rows`);
});
queue(visit, "why.html", WIDE, async (page) => {
  check((await page.evaluate(() => typeof globalThis.vega)) === "undefined", "a page of captures has no Vega");
  const plot = page.locator(".trace .plot").first();
  const over = plot.locator(".u-over");
  await over.scrollIntoViewIfNeeded();
  const said = await strokeUnder(page, over);
  check(/first sending|sent again|repeat/.test(said) && /server\.pcapng/.test(said) && /client\.pcapng/.test(said) && /packet [\d,]+/.test(said), "pointing at data says which packet carried it", said);
  await page.mouse.down();
  await page.mouse.up();
  const chosen = await page.locator(".chosen").innerText();
  check(/^Bytes [\d,]+ to [\d,]+ of the data were carried by/.test(chosen) && /packet [\d,]+ of .*server\.pcapng/.test(chosen), "a click on it says the same in words that stay", chosen);
  await page.locator(".plots").press("Escape");
  check((await page.locator(".chosen").innerText()) === "", "Escape lets it go");

  const before = await painted(plot);
  const box = await over.boundingBox();
  await page.mouse.move(box.x + 200, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + 320, box.y + 65, { steps: 4 });
  await page.mouse.up();
  await page.waitForTimeout(100);
  const zoomed = await painted(plot);
  check(zoomed !== before, "drawing up a part of the time shows it");
  const rows = await painted(page.locator(".trace .plot").nth(1));
  await page.locator('.trace .tools button[aria-label="the whole time"]').click();
  await page.waitForTimeout(100);
  check((await painted(plot)) === before, "and a button shows all of it again");
  check((await painted(page.locator(".trace .plot").nth(1))) !== rows, "the limits move along");
  await page.locator(".trace .plots").press("+");
  await page.waitForTimeout(100);
  check((await painted(plot)) !== before, "so does a key");
  await page.locator(".trace .plots").press("0");
  const button = page.locator(".trace .legend button").first();
  await button.click();
  await page.waitForTimeout(100);
  check((await button.getAttribute("aria-pressed")) === "false" && (await painted(plot)) !== before, "a click on the legend takes a path away");

  const limits = page.locator(".trace .plot").nth(1).locator(".u-over");
  await limits.hover({ position: { x: 300, y: 10 } });
  check(/^connection: .*\nmeaning/.test(await page.locator("#tip").innerText()), "a band says its limit and what that means", await page.locator("#tip").innerText());
});

queue(visit, "hostile.html", WIDE, async (page) => {
  const figure = figures(page).nth(1);
  await figure.locator(".chart .mark-symbol path").first().hover();
  check((await page.evaluate(() => window.broken)) === undefined, "no text has become a script");
  check((await page.locator("h3", { hasText: "</script>" }).count()) > 0, "such texts are shown as they are");
  const [file] = await download(page, figure, "svg");
  check(/^[a-z0-9-]+\.svg$/.test(file), "file names are plain", file);
});

// Pictures and prints by the command of a browser, of which nobody scrolls: each takes a page as it is when it has loaded.
const command = (...args) => promisify(execFile)(executablePath, ["--headless", ...ARGS, "--disable-gpu", "--hide-scrollbars", ...args, `file://${path.resolve(folder, "many.html")}`], { timeout: 120_000 });
/// Strokes of a PDF: how many lines and curves its pages draw.
function strokes(pdf) {
  const text = pdf.toString("latin1");
  let count = 0;
  for (let at = text.indexOf("stream"); at >= 0; at = text.indexOf("stream", at + 6)) {
    const begin = text[at + 6] === "\r" ? at + 8 : at + 7, end = text.indexOf("endstream", begin);
    try {
      count += (inflateSync(pdf.subarray(begin, end)).toString("latin1").match(/^[\d. -]+ [lc]$/gm) ?? []).length;
    } catch { /* a font or a picture */ }
    at = end;
  }
  return count;
}
queue(async () => {
  const [picture, print] = [path.resolve(folder, "many-command.png"), path.resolve(folder, "many-command.pdf")];
  rmSync(picture, { force: true });
  rmSync(print, { force: true });
  await command("--window-size=1000,30000", `--screenshot=${picture}`);
  await command(`--print-to-pdf=${print}`);
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto("about:blank");
  // In slices half as high as a figure: which have the colour of the first series.
  const slices = await page.evaluate(async (bytes) => {
    const bitmap = await createImageBitmap(await (await fetch(`data:image/png;base64,${bytes}`)).blob());
    const context = new OffscreenCanvas(bitmap.width, 200).getContext("2d", { willReadFrequently: true });
    const slices = [];
    for (let top = 0; top < bitmap.height; top += 200) {
      context.drawImage(bitmap, 0, -top);
      const { data } = context.getImageData(0, 0, bitmap.width, 200);
      let found = false;
      for (let i = 0; i < data.length && !found; i += 4) found = data[i] === 0 && data[i + 1] === 0x72 && data[i + 2] === 0xb2;
      slices.push(found);
    }
    return slices;
  }, readFileSync(picture).toString("base64"));
  await context.close();
  const coloured = slices.filter(Boolean).length;
  check(coloured > 50 && slices.slice(-20).includes(true), "a picture of a long page has its figures to the end", `${coloured} of ${slices.length} slices have some`);
  const drawn = strokes(readFileSync(print));
  check(drawn > 20_000, "a print of a long page has its figures", `${drawn} strokes`);
});

queue(visit, "many.html", { viewport: { width: 360, height: 740 }, colorScheme: "dark" }, async (page) => {
  check((await overflow(page)) <= 0, "many.html: nothing sticks out at 360 px", `${await overflow(page)} px do`);
  await page.locator("section.paper").screenshot({ path: path.join(folder, "paper-phone-dark.png") });
});

queue(visit, "many.html", WIDE, async (page) => {
  check((await page.locator(".index tbody tr:not(.paper)").count()) === 8, "eight studies have an index");
  await page.locator(".index .paper a").click();
  const head = page.locator("section.paper");
  check((await head.count()) === 1 && await head.isVisible(), "their paper has a head");
  check((await head.locator(".headlines tbody tr").count()) === 8, "a headline of each study");
  check((await overflow(page)) <= 0, "the head does not make the page wider than the window");
  check((await figures(page).count()) === 56 && (await undrawn(page)) === 0, "56 figures are drawn when the page has loaded");
});

await Promise.all([workOff(), workOff()]);
await browser.close();
console.log(failed === 0 ? "all checks hold" : `${failed} checks FAILED`);
process.exitCode = failed === 0 ? 0 : 1;
