// Tables of a page: a press on a head sorts by its column, and what is written into a field leaves the rows that contain it.
"use strict";

const anabranchTable = (() => {
  const PREFIXES = { n: 1e-9, µ: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 };
  /// Fewer rows can be looked through.
  const FILTERED = 8;

  /// The number that a cell begins with, in its unit without a prefix: 77100 for "77.1 kB", 0.002 for "+0.002 ± 0.001 *".
  function number(text) {
    const found = /^[≥>~+]*\s*([-−]?[\d,]*\.?\d+(?:e[-+]?\d+)?)/i.exec(text.trim());
    if (!found) return null;
    const unit = /^(?:\s*±\s*[\d.,e+-]+)?\s+(Ki|Mi|Gi|[nµmkMGT])(?:s|B|bit|bit\/s|B\/s)\b/.exec(text.trim().slice(found[0].length));
    return Number(found[1].replaceAll(",", "").replace("−", "-")) * (unit ? PREFIXES[unit[1]] : 1);
  }

  /// By number where most cells have one, else by text; cells without stand last, in either direction.
  function order(cells) {
    const numbers = cells.map(number);
    const filled = cells.filter((cell) => cell.trim() !== "").length;
    const counts = numbers.filter((it) => it !== null).length * 2 > filled;
    const keys = counts ? numbers : cells.map((cell) => cell.trim() || null);
    const compare = (a, b) => (counts ? a - b : a.localeCompare(b, "en", { numeric: true }));
    return (down) => [...keys.keys()].sort((i, k) => {
      if (keys[i] === null || keys[k] === null) return (keys[i] === null) - (keys[k] === null) || i - k;
      return (down ? -1 : 1) * compare(keys[i], keys[k]) || i - k;
    });
  }

  return function anabranchTable(box) {
    const table = box.querySelector("table"), body = table?.tBodies[0];
    if (!body || body.rows.length < 2) return;
    const rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      if (head.textContent.trim() === "") return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.scope = "col";
      const orders = order(rows.map((row) => row.cells[column]?.textContent ?? ""));
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        // Up, down, as it was.
        const next = now === null ? "ascending" : now === "ascending" ? "descending" : null;
        if (next) head.setAttribute("aria-sort", next);
        body.append(...(next ? orders(next === "descending").map((n) => rows[n]) : rows));
      });
    });
    if (rows.length < FILTERED) return;
    const field = Object.assign(document.createElement("input"), { type: "search", placeholder: "Filter" });
    const said = document.createElement("span");
    said.setAttribute("role", "status");
    field.setAttribute("aria-label", `Rows that contain: ${box.querySelector("h3")?.textContent ?? "table"}`);
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
      said.textContent = words.length > 0 ? `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows` : "";
    });
    const line = document.createElement("p");
    line.className = "filter";
    line.append(field, said);
    box.querySelector("h3").after(line);
  };
})();
