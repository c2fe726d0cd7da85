// The page: unpacks the simulator, and shows the part that the address asks for.

import "../../crates/report/assets/page.css";
import "./style.css";
import { CaptureView } from "./capture";
import { h } from "./dom";
import { inside, Problem, quick, runs } from "./engine";
import { Laboratory } from "./lab";
import { contents, LessonView } from "./lessons";
import { read, readStudy } from "./link";
import { papers, shelf, StudyView } from "./papers";
import { wrong } from "./task";
import { begin } from "./theme";
import { unpacked } from "./unpack";
import type { About, Outline } from "./types";

const main = document.getElementById("main") ?? document.body;

/// Runs the scripts that figures are drawn with, which the page holds packed. The page's policy knows them by hash. The
/// program that serves the page has them as they are.
function scripts(): void {
  const place = document.getElementById("drawing");
  if (!place) return;
  const codes = JSON.parse(new TextDecoder().decode(unpacked(place))) as string[];
  for (const code of codes) document.body.append(h("script", {}, code));
}

async function start(): Promise<void> {
  begin();
  scripts();
  const about = await quick.ask<About>({ do: "about" });
  const version = document.getElementById("version");
  if (version) version.textContent = `Anabranch ${about.version} (build ${about.build})`;
  const where = document.getElementById("where");
  if (where && !inside) where.textContent = "The program that serves this page has the simulator. Files that you choose go to it and nowhere else.";
  // For the reader's console, and for tests.
  Object.assign(window, { anabranch: (request: object, script?: string) => runs.ask(request, { script }) });
  const laboratory = new Laboratory(about);
  const capture = new CaptureView(about);
  let filled = false;
  let opened = 0;

  async function open(first: boolean): Promise<void> {
    const own = ++opened;
    const [part = "", query = ""] = location.hash.slice(1).split("?", 2);
    if (runs.busy) runs.cancel();
    const lesson = about.lessons.find(([name]) => `lesson/${name}` === part);
    let title = "lessons";
    if (part === "lab") {
      title = "laboratory";
      show(laboratory.element);
      if (query || !filled) laboratory.take(await read(query));
      filled = true;
    } else if (part === "capture") {
      title = "capture";
      show(capture.element);
    } else if (part === "papers" || part.startsWith("paper/")) {
      title = "papers";
      const all = await papers();
      const outline = part === "papers" ? undefined : await quick.ask<Outline>({ do: "outline", name: part.slice("paper/".length) });
      // Another part was opened meanwhile.
      if (own !== opened) return;
      if (outline) {
        title = `${outline.name}: ${outline.title}`;
        const view = new StudyView(all, outline);
        show(view.element);
        view.take(readStudy(query));
      } else {
        show(shelf(all));
      }
    } else if (lesson) {
      title = lesson[1].title;
      const view = new LessonView(about, ...lesson);
      show(view.element);
      void view.run();
    } else {
      show(contents(about));
    }
    document.title = `Anabranch: ${title}`;
    for (const link of document.querySelectorAll("header nav a")) {
      const here = link.getAttribute("href") === `#${part.split("/")[0]?.replace(/^(lesson|paper)$/, "$1s") || "lessons"}`;
      if (here) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    // Not at the beginning: the skip link comes first there.
    if (!first) main.focus({ preventScroll: true });
    if (!first) scrollTo(0, 0);
  }

  addEventListener("hashchange", () => void open(false).catch(failed));
  await open(true);
}

function show(element: HTMLElement): void {
  main.replaceChildren(element);
}

function failed(error: unknown): void {
  main.replaceChildren(h("h1", {}, "Something went wrong"), wrong(error instanceof Problem ? error.trouble : { problem: error instanceof Error ? error.message : String(error) }));
}

document.querySelector(".skip")?.addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
start().catch(failed);
