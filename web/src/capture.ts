// A capture that the reader has: what its time went to. The file does not leave the machine.

import { h, unique } from "./dom";
import { runs } from "./engine";
import { Task } from "./task";
import type { About, CaptureAnswer } from "./types";
import { whyCapture } from "./why";

/// More would not fit into the memory of a page.
const MOST = 1 << 30;

export class CaptureView {
  readonly element: HTMLElement;
  private readonly task = new Task();
  private files: File[] = [];

  constructor(private readonly about: About) {
    const id = unique("files");
    const input = h("input", { id, type: "file", multiple: true, accept: ".pcap,.pcapng,.cap,.gz", onchange: () => void this.take(input.files) });
    const drop = h("div", {
      className: "drop",
      ondragover: (event: DragEvent) => { event.preventDefault(); drop.classList.add("over"); },
      ondragleave: () => drop.classList.remove("over"),
      ondrop: (event: DragEvent) => {
        event.preventDefault();
        drop.classList.remove("over");
        void this.take(event.dataTransfer?.files ?? null);
      },
    }, h("p", {}, "Drop one capture here, or two of the same time from both ends."), h("p", {}, h("label", { className: "button", for: id }, "Choose files"), input));
    this.element = h("section", { "aria-labelledby": "capture-title" },
      h("h1", { id: "capture-title" }, "Why was it slow?"),
      h("p", { className: "lead" }, "Give it a capture (pcap or pcapng, also gzipped) of a transfer over MPTCP or plain TCP, of any hosts. From the packets alone it says what the time went to, and how sure it is. The file stays on this machine."),
      drop,
      h("details", {}, h("summary", {}, "How to capture"), h("pre", { tabindex: "0" }, "sudo tcpdump -i any -s 160 -w capture.pcap tcp")),
      this.task.status, this.task.place);
  }

  private async take(files: FileList | null): Promise<void> {
    if (!files || files.length === 0) return;
    this.files = [...files];
    await this.ask(undefined);
  }

  private ask(connection: number | undefined): Promise<void> {
    return this.task.run("Capture", async () => {
      const all = this.files.reduce((sum, file) => sum + file.size, 0);
      if (all > MOST) throw new Error(`${Math.round(all / 1e6)} MB are more than a page can hold: use \`anabranch why\` for files above 1 GiB`);
      const bytes = await Promise.all(this.files.map((file) => file.arrayBuffer()));
      const request = { do: "capture", files: this.files.map(({ name, size }) => [name, size]), ...(connection === undefined ? {} : { connection }) };
      const { answer } = await runs.ask<{ answer: CaptureAnswer }>(request, { files: bytes });
      return whyCapture(this.about, answer, (number) => void this.ask(number));
    });
  }
}
