// The page's script: theme, sorting and filtering of rows, the list of runs, downloads.
// Everything that comes from a run is set as text, never as markup.

const data = JSON.parse(document.getElementById("data").textContent);

function make(tag, attributes = {}, text = null) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== null) made.textContent = text;
  return made;
}

// --- theme: the system's until the button is pressed; kept while the page is open

function startTheme() {
  const button = document.getElementById("theme"), root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const tell = () => {
    button.setAttribute("aria-pressed", String(dark()));
    document.dispatchEvent(new Event("mario-theme"));
  };
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; tell(); });
  system.addEventListener("change", tell);
  tell();
}

const TABLES = "table:is(.wide, .long, .choice, .claims)";

// --- tables: which cell is in which column, with spans

function columnsOf(row, spans = []) {
  const cells = [];
  let column = 0;
  const skip = () => { while (spans[column] > 0) { spans[column] -= 1; column += 1; } };
  for (const cell of row.cells) {
    skip();
    const width = Number(cell.dataset.span || cell.colSpan);
    for (let i = 0; i < width; i++, column++) {
      cells[column] = cell;
      if (cell.rowSpan > 1) spans[column] = cell.rowSpan - 1;
    }
  }
  skip();
  return cells;
}

function headsOf(table) {
  const spans = [], columns = [];
  for (const row of table.tHead.rows) {
    columnsOf(row, spans).forEach((cell, i) => (columns[i] ||= []).push(cell));
  }
  return columns;
}

function number(cell) {
  if (!cell || cell.tagName === "TH") return null; // rows are sorted by name
  const text = (cell.dataset.sort ?? cell.textContent).replace("−", "-").replace("<", "").trim();
  const found = /^[-+]?\d*\.?\d+(e[-+]?\d+)?/i.exec(text);
  return found ? Number(found[0]) : null;
}

const text = (cell) => cell?.textContent ?? "";

function compare(a, b, column, sign) {
  const [x, y] = [a.cells[column], b.cells[column]], [m, n] = [number(x), number(y)];
  if (m !== null && n !== null && m !== n) return sign * (m - n);
  if ((m === null) !== (n === null)) return m === null ? 1 : -1; // cells without a number come last in either order
  return m === null ? sign * text(x).localeCompare(text(y)) : 0;
}

function makeSortable(table) {
  const body = table.tBodies[0], first = [...body.rows];
  headsOf(table).forEach((stack, column) => {
    const head = [...stack].reverse().find((cell) => Number(cell.dataset.span || cell.colSpan) === 1);
    if (!head || head.querySelector("button") || !head.textContent.trim()) return;
    const button = make("button", { type: "button", class: "sort" });
    button.append(...head.childNodes, make("span", { class: "turn", "aria-hidden": "true" }));
    head.append(button);
    button.addEventListener("click", () => {
      const rows = first.map((row) => ({ row, cells: columnsOf(row) }));
      const numeric = rows.some(({ cells }) => cells[column]?.tagName === "TD" && number(cells[column]) !== null);
      const turn = numeric ? ["descending", "ascending"] : ["ascending", "descending"]; // the best first
      const now = head.getAttribute("aria-sort"), next = turn[now ? turn.indexOf(now) + 1 : 0];
      table.querySelectorAll("th[aria-sort]").forEach((cell) => cell.removeAttribute("aria-sort"));
      if (next) {
        head.setAttribute("aria-sort", next);
        rows.sort((a, b) => compare(a, b, column, next === "ascending" ? 1 : -1));
      }
      body.append(...rows.map(({ row }) => row)); // the third press restores the first order
    });
  });
}

// --- choice of methods and datasets, for the whole page

function wanted(input) {
  const terms = input.value.toLowerCase().split(",").map((term) => term.trim()).filter(Boolean);
  return (text) => !terms.length || terms.some((term) => text.toLowerCase().includes(term));
}

function startFilters() {
  const methods = document.getElementById("filter-methods"), datasets = document.getElementById("filter-datasets");
  const status = document.getElementById("filter-status"), tables = [...document.querySelectorAll(TABLES)];
  const apply = () => {
    const method = wanted(methods), dataset = wanted(datasets);
    let shown = 0, all = 0;
    document.querySelectorAll("[data-case]:not(tr, th)").forEach((part) => (part.hidden = !dataset(part.dataset.case)));
    for (const table of tables) {
      if (table.matches(".claims")) continue; // its rows are claims, not methods
      for (const row of table.tBodies[0].rows) {
        const { label, case: name } = row.dataset;
        row.hidden = (label !== undefined && !method(label)) || (name !== undefined && !dataset(name));
        all += 1;
        shown += row.hidden || row.closest("[data-case][hidden]") ? 0 : 1;
      }
      hideColumns(table, dataset);
    }
    const asked = methods.value.trim() || datasets.value.trim();
    status.textContent = !asked ? "" : shown ? `${shown} of ${all} rows shown` : "no row matches";
  };
  methods.addEventListener("input", apply);
  datasets.addEventListener("input", apply);
  apply();
}

function hideColumns(table, dataset) {
  const stacks = headsOf(table);
  if (!table.tHead.querySelector("th[data-case]")) return;
  const hidden = stacks.map((stack) => {
    const named = stack.find((cell) => cell.dataset.case);
    return Boolean(named) && !dataset(`${named.dataset.case} ${named.textContent}`);
  });
  for (const row of table.rows) {
    const cells = row.parentNode === table.tHead ? null : columnsOf(row);
    if (!cells) continue;
    fit(cells, hidden);
  }
  const spans = [];
  for (const row of table.tHead.rows) fit(columnsOf(row, spans), hidden);
}

function fit(cells, hidden) {
  for (const cell of new Set(cells.filter(Boolean))) {
    const places = cells.flatMap((other, i) => (other === cell ? [i] : []));
    const left = places.filter((i) => !hidden[i]).length;
    cell.dataset.span ||= String(places.length);
    cell.hidden = left === 0;
    if (left) cell.colSpan = left;
  }
}

// --- files

function save(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = make("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

function csv(rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

// In percent, as in the tables.
const percent = (score) => typeof score === "number" ? Number((100 * score).toPrecision(12)) : score;

function runsAsCsv(study) {
  const runs = data.runs.filter((run) => !study || run.studies.some((one) => one.study === study));
  const names = (part) => [...new Set(runs.flatMap((run) => Object.keys(part(run))))];
  const facts = names((run) => run.facts), scores = names((run) => run.scores);
  const settings = names((run) => data.settings[run.settings]), environment = names((run) => data.environments[run.environment]);
  const rows = [["study", "case", "label", ...facts, ...scores, ...settings.map((n) => `settings.${n}`), ...environment.map((n) => `environment.${n}`)]];
  for (const run of runs) {
    for (const one of run.studies.filter((one) => !study || one.study === study)) {
      rows.push([
        one.study, one.case, one.label, ...facts.map((n) => run.facts[n]), ...scores.map((n) => percent(run.scores[n])),
        ...settings.map((n) => data.settings[run.settings][n]), ...environment.map((n) => data.environments[run.environment][n]),
      ]);
    }
  }
  return csv(rows);
}

function coordinatesAsCsv(group) {
  const rows = [["case", "label", group.unit, "x", "y", "class", "domain", "set", "prediction"]];
  for (const one of group.maps) {
    group.node.forEach((node, i) => rows.push([
      group.case, one.label, node, one.x[i] / 10000, one.y[i] / 10000, group.y[i], group.domain[i], data.sets[group.split[i]].key, one.prediction[i],
    ]));
  }
  return csv(rows);
}

function startDownloads() {
  const types = { csv: "text/csv", md: "text/markdown", tex: "text/x-tex" };
  document.querySelectorAll("button[data-save]").forEach((button) => {
    button.addEventListener("click", () => {
      const { save: kind, name } = button.dataset;
      if (kind === "file") save(name, data.files[name], types[name.split(".").pop()] ?? "text/plain");
      else if (kind === "runs") save(name, runsAsCsv(button.dataset.study ?? ""), types.csv);
      else save(name, coordinatesAsCsv(data.maps[Number(button.dataset.map)]), types.csv);
    });
  });
}

// --- the list of runs: drawn when it is opened, a page at a time

function startRuns() {
  const part = document.getElementById("runs");
  if (!part) return;
  const box = part.querySelector("details"), list = part.querySelector("ol"), search = part.querySelector("input");
  const more = part.querySelector("button[data-more]"), status = part.querySelector("[role=status]"), PAGE = 50;
  const shown = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));
  const pairs = (part) => Object.entries(part).map(([name, value]) => `${name}=${shown(value)}`).join(" ");
  const haystack = data.runs.map((run) => [
    run.studies.map((one) => `${one.study} ${one.case} ${one.label}`).join(" "), pairs(run.facts), pairs(run.scores),
    pairs(data.settings[run.settings]), pairs(data.environments[run.environment]),
  ].join(" ").toLowerCase());
  let found = [], drawn = 0;

  const facts = (part, form = shown) => {
    const list = make("dl", { class: "facts" });
    for (const [name, value] of Object.entries(part)) list.append(make("dt", {}, name), make("dd", {}, form(value)));
    return list;
  };
  const score = (value) => (typeof value === "number" ? `${(100 * value).toFixed(1)} %` : shown(value));
  const entry = (run) => {
    const item = make("li"), details = make("details"), head = make("summary"), [first] = run.studies;
    head.append(
      make("b", {}, first.label),
      make("span", {}, ` on ${first.case}, split ${run.facts.split_seed ?? "–"}, seed ${run.facts.seed ?? "–"} `),
      make("code", {}, run.facts.digest ?? ""),
    );
    details.append(head);
    details.addEventListener("toggle", () => {
      if (!details.open || details.childElementCount > 1) return;
      const blocks = [["Run", { ...run.facts, studies: run.studies.map((one) => one.study).join(", ") }], ["Scores", run.scores, score],
        ["Settings", data.settings[run.settings]], ["Environment", data.environments[run.environment]]];
      for (const [name, part, form] of blocks) details.append(make("p", { class: "label" }, name), facts(part, form));
    });
    item.append(details);
    return item;
  };
  const draw = () => {
    list.append(...found.slice(drawn, drawn + PAGE).map((i) => entry(data.runs[i])));
    drawn = Math.min(found.length, drawn + PAGE);
    more.hidden = drawn >= found.length;
    status.textContent = `${found.length} of ${data.runs.length} runs${drawn < found.length ? `, the first ${drawn} shown` : ""}`;
  };
  const look = () => {
    const terms = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = haystack.flatMap((line, i) => (terms.every((term) => line.includes(term)) ? [i] : []));
    drawn = 0;
    list.replaceChildren();
    draw();
  };
  more.addEventListener("click", draw);
  search.addEventListener("input", look);
  box.addEventListener("toggle", () => { if (box.open && !list.childElementCount) look(); });
}

// --- boxes that scroll sideways can be focused with the keyboard, others cannot

function startBoxes() {
  const boxes = [...document.querySelectorAll(".scroll, .sheet")];
  const look = () => boxes.forEach((box) => {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  });
  addEventListener("resize", look);
  document.addEventListener("toggle", look, true);
  look();
}

function start() {
  document.documentElement.classList.add("scripted");
  document.querySelectorAll(TABLES).forEach(makeSortable);
  startTheme();
  startFilters();
  startDownloads();
  startRuns();
  startBoxes();
  document.querySelectorAll("[data-map-of]").forEach((place) => new EmbeddingMap(place, data.maps[Number(place.dataset.mapOf)]));
}
