// Unpacks the scripts that a page holds compressed and runs them in their order, and puts the licences in their place. All of it
// at once: a page whose scripts come later could be printed, or its picture taken, before anything is drawn. The
// Content-Security-Policy names the unpacked scripts by hash, so only these run.
"use strict";

for (const block of document.querySelectorAll("script[data-packed]")) {
  const bytes = Uint8Array.from(atob(block.textContent), (byte) => byte.charCodeAt(0));
  const texts = JSON.parse(new TextDecoder().decode(fflate.unzlibSync(bytes)));
  if (block.dataset.packed === "licences") {
    document.querySelector(".licences pre").textContent = texts.join("\n");
  } else {
    for (const text of texts) document.body.append(Object.assign(document.createElement("script"), { textContent: text }));
  }
  block.remove();
}
