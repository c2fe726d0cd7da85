// The page: unpacks the simulator, and shows the part that the address asks for.

import "../../crates/report/assets/page.css";
import "./style.css";
import { CaptureView } from "./capture";
import { h } from "./dom";
import { quick, runs } from "./engine";
import { Laboratory } from "./lab";
import { contents, LessonView } from "./lessons";
import { read } from "./link";
import { wrong } from "./task";
import { begin } from "./theme";
import type { About } from "./types";

const main = document.getElementById("main") ?? document.body;

async function start(): Promise<void> {
  begin();
  const about = await quick.ask<About>({ do: "about" });
  const version = document.getElementById("version");
  if (version) version.textContent = `Anabranch ${about.version}`;
  // For the reader's console, and for tests.
  Object.assign(window, { anabranch: (request: object, script?: string) => runs.ask(request, { script }) });
  const laboratory = new Laboratory(about);
  const capture = new CaptureView(about);
  let filled = false;

  async function open(first: boolean): Promise<void> {
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
      const own = link.getAttribute("href") === `#${part.split("/")[0]?.replace(/^lesson$/, "lessons") || "lessons"}`;
      if (own) link.setAttribute("aria-current", "page");
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
  main.replaceChildren(h("h1", {}, "Something went wrong"), wrong({ problem: error instanceof Error ? error.message : String(error) }));
}

document.querySelector(".skip")?.addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
start().catch(failed);
