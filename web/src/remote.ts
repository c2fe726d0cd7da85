// The simulator in the program that serves the page (`anabranch lab`): a worker's messages, over HTTP.

import type { Trouble } from "./types";

interface Asked { id: number; request: string; files: ArrayBuffer[] }

/// Stands for a worker: takes its requests, and gives its messages.
export class Remote extends EventTarget {
  private readonly gone = new AbortController();

  /// The program that serves the page answers; a request to it ends with this.
  terminate(): void { this.gone.abort(); }

  postMessage(message: object, _handedOver?: ArrayBuffer[]): void {
    // What a worker is begun with, the program has.
    if ("request" in message) void this.ask(message as Asked);
  }

  private tell(data: object): void { this.dispatchEvent(new MessageEvent("message", { data })); }

  private async ask({ id, request, files }: Asked): Promise<void> {
    const failed = (trouble: Trouble) => this.tell({ id, answer: JSON.stringify({ error: trouble }) });
    try {
      const body = new Blob([request, "\n", ...files]);
      const response = await fetch("ask", { method: "POST", body, signal: this.gone.signal });
      if (!response.ok || !response.body) return failed({ problem: `the program refuses to answer: ${(await response.text()).trim()}` });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let answered = false;
      for (let held = ""; ;) {
        const { done, value } = await reader.read();
        if (done) break;
        const lines = (held + value).split("\n");
        held = lines.pop() ?? "";
        for (const line of lines) {
          const said = JSON.parse(line) as object;
          answered ||= "answer" in said;
          this.tell({ id, ...said });
        }
      }
      if (!answered) failed({ problem: "the program ended before it had answered", help: "look at what it says where it was started" });
    } catch (error) {
      if (!this.gone.signal.aborted) failed({ problem: `the program that serves this page does not answer: ${error instanceof Error ? error.message : String(error)}`, help: "start `anabranch lab` again" });
    }
  }
}
