// The embedding map: several methods on the same nodes, side by side, that move together.

const SHAPES = {
  o: (c, x, y, r) => { c.moveTo(x + r, y); c.arc(x, y, r, 0, 2 * Math.PI); },
  s: (c, x, y, r) => polygon(c, [[x - r, y - r], [x + r, y - r], [x + r, y + r], [x - r, y + r]]),
  "^": (c, x, y, r) => polygon(c, [[x, y - 1.3 * r], [x + 1.2 * r, y + r], [x - 1.2 * r, y + r]]),
  D: (c, x, y, r) => polygon(c, [[x, y - 1.4 * r], [x + 1.4 * r, y], [x, y + 1.4 * r], [x - 1.4 * r, y]]),
  v: (c, x, y, r) => polygon(c, [[x, y + 1.3 * r], [x + 1.2 * r, y - r], [x - 1.2 * r, y - r]]),
  P: (c, x, y, r) => cross(c, x, y, 1.25 * r, 0),
  X: (c, x, y, r) => cross(c, x, y, 1.25 * r, Math.PI / 4),
  "*": (c, x, y, r) => polygon(c, ring(x, y, 10, (i) => (i % 2 ? 0.65 * r : 1.6 * r))),
};

function polygon(c, corners) {
  corners.forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
  c.closePath();
}

function ring(x, y, n, radius) {
  return Array.from({ length: n }, (_, i) => {
    const angle = (2 * Math.PI * i) / n - Math.PI / 2;
    return [x + radius(i) * Math.cos(angle), y + radius(i) * Math.sin(angle)];
  });
}

function cross(c, x, y, r, turn) {
  const w = 0.36 * r, corners = [[w, w], [w, r], [-w, r], [-w, w], [-r, w], [-r, -w], [-w, -w], [-w, -r], [w, -r], [w, -w], [r, -w], [r, w]];
  const sin = Math.sin(turn), cos = Math.cos(turn);
  polygon(c, corners.map(([a, b]) => [x + a * cos - b * sin, y + a * sin + b * cos]));
}

// A class or a domain in words: its name if it has one, else its number.
const className = (group, value) => group.class_names[value] ?? `class ${value}`;
const domainName = (group, value) => group.domain_names[value] ?? `${group.domain_name} ${value}`;

const MOST_KINDS = 16; // categories with their own mark; the smaller ones are gray

// The kind of each node, and how a kind looks. Errors depend on the method, everything else on the node.
function kindsOf(group, one, by) {
  if (by === "error") {
    const wrong = group.y.map((y, i) => (y === one.prediction[i] ? 0 : 1));
    return { of: wrong, kinds: [mark("right", data.look.gray, "o", 0.45), mark("wrong", data.look.wrong, "X", 1)] };
  }
  if (by === "split") {
    const kinds = data.sets.map((set) => mark(set.name, set.color, set.marker, 1));
    return { of: group.split, kinds };
  }
  const values = by === "class" ? group.y : group.domain;
  const word = by === "class" ? "class" : group.domain_name;
  const counts = new Map();
  values.forEach((value) => counts.set(value, (counts.get(value) || 0) + 1));
  const sorted = [...counts.keys()].sort((a, b) => a - b);
  if (by === "domain" && sorted.length > MOST_KINDS) {
    // By rank among the nodes: most degrees are small, and by value would all have one color.
    const place = new Map();
    let below = 0;
    for (const value of sorted) {
      place.set(value, (below + counts.get(value) / 2) / values.length);
      below += counts.get(value);
    }
    return { of: values, scale: (value) => gradient(place.get(value)), ends: [sorted[0], sorted[sorted.length - 1]], word };
  }
  const largest = [...sorted].sort((a, b) => counts.get(b) - counts.get(a)).slice(0, MOST_KINDS).sort((a, b) => a - b);
  const rank = new Map(largest.map((value, i) => [value, i]));
  const n = data.look.colors.length, m = data.look.markers.length;
  const kinds = largest.map((value, i) => mark(by === "class" ? className(group, value) : domainName(group, value), data.look.colors[i % n], data.look.markers[(i + Math.floor(i / n)) % m], 1));
  if (sorted.length > largest.length) kinds.push(mark(`${sorted.length - largest.length} smaller`, data.look.gray, "o", 0.4));
  return { of: values.map((value) => (rank.has(value) ? rank.get(value) : largest.length)), kinds };
}

function mark(name, color, shape, alpha) {
  return { name, color, shape, alpha };
}

function gradient(t) {
  const stops = data.look.sequential, at = Math.min(stops.length - 1.001, Math.max(0, t * (stops.length - 1)));
  const low = Math.floor(at), part = at - low;
  const channel = (i) => Math.round(stops[low][i] + part * (stops[low + 1][i] - stops[low][i]));
  return `rgb(${channel(0)},${channel(1)},${channel(2)})`;
}

class EmbeddingMap {
  constructor(place, group) {
    this.group = group;
    this.by = "class";
    this.view = { x: 0.5, y: 0.5, k: 1 };
    this.node = -1; // place of the current node
    this.active = null; // on which panel
    this.held = false; // chosen by a click, a tap or a key: it stays when the pointer leaves
    this.muted = new Set(); // kinds that the legend has switched off
    this.panels = [];
    this.build(place);
    const few = group.maps.length > 4 || matchMedia("(max-width: 700px)").matches;
    this.choices.forEach((box, i) => (box.checked = !few || group.two.includes(group.maps[i].label)));
    this.arrange();
    document.addEventListener("mario-theme", () => this.draw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    matchMedia("print").addEventListener("change", () => this.paint());
  }

  build(place) {
    const group = this.group, name = `map-${data.maps.indexOf(group)}`;
    const select = make("select", { id: `${name}-by` });
    for (const [value, text] of [["class", "class"], ["domain", `domain (${group.domain_name})`], ["split", "set"], ["error", "error"]]) {
      select.append(make("option", { value }, text));
    }
    select.addEventListener("change", () => { this.by = select.value; this.muted.clear(); this.drawLegend(); this.draw(); });
    const button = (text, label, act) => {
      const made = make("button", { type: "button", "aria-label": label, title: label }, text);
      made.addEventListener("click", act);
      return made;
    };
    const zooms = make("span", { class: "group" });
    zooms.append(
      button("−", "Zoom out", () => this.zoom(1 / 1.5)),
      button("+", "Zoom in", () => this.zoom(1.5)),
      button("reset", "Show the whole map", () => this.reset()),
    );
    const methods = make("fieldset");
    methods.append(make("legend", {}, "Side by side"));
    this.choices = group.maps.map((one) => {
      const label = make("label"), box = make("input", { type: "checkbox" });
      box.addEventListener("change", () => this.arrange());
      label.append(box, make("span", {}, one.label));
      methods.append(label);
      return box;
    });
    const tools = make("div", { class: "tools" });
    const by = make("label", { for: `${name}-by` }, "Color by ");
    by.append(select);
    tools.append(by, methods, zooms);
    this.legend = make("div", { class: "legend", role: "group", "aria-label": "Legend; a press leaves a kind out" });
    this.panelsBox = make("div", { class: "panels" });
    this.status = make("p", { class: "status", role: "status" });
    this.help = make(
      "p", { class: "help", id: `${name}-help` },
      "Drag or arrow keys move, wheel, pinch or + and − zoom, 0 shows all. Point at a node, or go through them with N and P, or with shift and an arrow key; escape lets go.",
    );
    place.prepend(tools, this.legend, this.panelsBox, this.status, this.help);
    this.drawLegend();
  }

  // The panels of the methods that are chosen; the last choice cannot be taken away.
  arrange() {
    if (!this.choices.some((box) => box.checked)) this.choices[this.choices.length - 1].checked = true;
    this.panels.forEach((panel) => panel.watch.disconnect());
    this.active = null;
    this.panels = this.group.maps.filter((_, i) => this.choices[i].checked).map((one) => this.panel(one));
    const count = this.panels.length;
    this.panelsBox.style.setProperty("--columns", count === 4 ? 2 : Math.min(3, count));
    this.panelsBox.replaceChildren(...this.panels.map((panel) => panel.box));
    this.say();
    this.draw();
  }

  panel(one) {
    const { group } = this, unit = group.unit;
    const box = make("figure", { class: "panel" });
    const caption = make("figcaption");
    const said = make("span", { class: "said" });
    caption.append(make("b", {}, one.label), said);
    const canvas = make("canvas", {
      tabindex: "0", role: "application", "aria-roledescription": "map", "aria-describedby": this.help.id,
      "aria-label": `Embeddings of ${one.label}: ${group.y.length} ${unit}s. The numbers are in the table below.`,
    });
    const tip = make("div", { class: "tip", "aria-hidden": "true", hidden: "" });
    const frame = make("div", { class: "frame" });
    frame.append(canvas, tip);
    box.append(caption, frame);
    const panel = { one, box, canvas, tip, said, size: 0, watch: new ResizeObserver(() => this.draw()) };
    panel.watch.observe(canvas);
    this.listen(panel);
    return panel;
  }

  listen(panel) {
    const { canvas } = panel, pointers = new Map();
    let moved = 0;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      pointers.set(event.pointerId, at(event));
      if (pointers.size === 1) moved = 0;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const now = at(event), before = pointers.get(event.pointerId);
      if (!before) return void (event.pointerType === "mouse" && !this.held && this.look(panel, this.nearest(panel, now)));
      const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
      if (others.length === 1) {
        const [other] = others, apart = (p) => Math.hypot(p.x - other.x, p.y - other.y);
        this.zoom(apart(now) / Math.max(1, apart(before)), { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 }, panel);
        this.pan((now.x - before.x) / 2, (now.y - before.y) / 2, panel);
      } else if (!others.length) {
        this.pan(now.x - before.x, now.y - before.y, panel);
      }
      moved += Math.hypot(now.x - before.x, now.y - before.y);
      pointers.set(event.pointerId, now);
    });
    const up = (event) => {
      const there = pointers.delete(event.pointerId);
      if (there && event.type === "pointerup" && moved < 6 && !pointers.size) this.hold(panel, this.nearest(panel, at(event)));
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", () => { if (!this.held) this.look(null, -1); });
    canvas.addEventListener("wheel", (event) => {
      // Where there is nothing to zoom out of, the wheel is the page's.
      if (event.deltaY > 0 && this.view.k <= 1) return;
      event.preventDefault();
      this.zoom(Math.exp(-Math.max(-100, Math.min(100, event.deltaY)) / 250), at(event), panel);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event, panel));
  }

  key(event, panel) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 48, arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const arrow = arrows[event.key];
    if (arrow && event.shiftKey) this.hold(panel, this.towards(panel, arrow), true);
    else if (arrow) this.pan(-step * arrow[0], -step * arrow[1], panel);
    else if (event.key === "+" || event.key === "=") this.zoom(1.5);
    else if (event.key === "-" || event.key === "_") this.zoom(1 / 1.5);
    else if (event.key === "0") this.reset();
    else if (event.key.toLowerCase() === "n") this.hold(panel, this.next(panel, 1), true);
    else if (event.key.toLowerCase() === "p") this.hold(panel, this.next(panel, -1), true);
    else if (event.key === "Escape" && this.node >= 0) this.hold(null, -1);
    else return;
    event.preventDefault();
  }

  reset() {
    this.view = { x: 0.5, y: 0.5, k: 1 };
    this.draw();
  }

  zoom(factor, at, panel) {
    const k = Math.min(60, Math.max(1, this.view.k * factor));
    if (at && panel) { // what is under the pointer stays there
      const size = panel.size;
      this.view.x += ((at.x / size - 0.5) * (1 / this.view.k - 1 / k)) / 0.94;
      this.view.y += ((at.y / size - 0.5) * (1 / this.view.k - 1 / k)) / 0.94;
    }
    this.view.k = k;
    this.clamp();
    this.draw();
  }

  pan(dx, dy, panel) {
    const scale = 0.94 * panel.size * this.view.k;
    this.view.x -= dx / scale;
    this.view.y -= dy / scale;
    this.clamp();
    this.draw();
  }

  clamp() {
    const reach = 0.5 - 0.5 / this.view.k;
    this.view.x = Math.min(0.5 + reach, Math.max(0.5 - reach, this.view.x));
    this.view.y = Math.min(0.5 + reach, Math.max(0.5 - reach, this.view.y));
  }

  position(panel, i) {
    const { view } = this, scale = 0.94 * panel.size * view.k, half = panel.size / 2;
    return { x: half + (panel.one.x[i] / 10000 - view.x) * scale, y: half - (panel.one.y[i] / 10000 - (1 - view.y)) * scale };
  }

  nearest(panel, at) {
    let best = -1, least = 16 ** 2;
    for (let i = 0; i < panel.one.x.length; i++) {
      if (this.isMuted(panel, i)) continue;
      const p = this.position(panel, i), d = (p.x - at.x) ** 2 + (p.y - at.y) ** 2;
      if (d < least) { least = d; best = i; }
    }
    return best;
  }

  // The next node in the direction of an arrow: the nearest in a quarter of the plane; from none, the one in the middle.
  towards(panel, [dx, dy]) {
    const from = this.node < 0 ? { x: panel.size / 2, y: panel.size / 2 } : this.position(panel, this.node);
    let best = this.node, least = Infinity;
    for (let i = 0; i < panel.one.x.length; i++) {
      if (i === this.node || this.isMuted(panel, i)) continue;
      const p = this.position(panel, i), x = p.x - from.x, y = p.y - from.y, along = x * dx + y * dy;
      if (this.node >= 0 && along <= Math.abs(x * dy) + Math.abs(y * dx)) continue;
      const d = x * x + y * y;
      if (d < least) { least = d; best = i; }
    }
    return best;
  }

  next(panel, step) {
    const n = panel.one.x.length;
    for (let k = 1, i = this.node < 0 && step < 0 ? 0 : this.node; k <= n; k++) {
      i = (i + step + n) % n;
      if (!this.isMuted(panel, i)) return i;
    }
    return -1;
  }

  isMuted(panel, i) {
    return this.muted.size > 0 && this.muted.has(this.kinds(panel.one).of[i]);
  }

  kinds(one) {
    const key = this.by === "error" ? one.label : "";
    if (this.kept?.by !== this.by) this.kept = { by: this.by, found: new Map() };
    if (!this.kept.found.has(key)) this.kept.found.set(key, kindsOf(this.group, one, this.by));
    return this.kept.found.get(key);
  }

  look(panel, i) {
    if (this.node === i && this.active === panel) return;
    this.node = i;
    this.active = i < 0 ? null : panel;
    this.draw();
  }

  // A chosen node is brought into view and announced to screen readers.
  hold(panel, i, reveal) {
    this.held = i >= 0;
    this.look(panel, i);
    if (i >= 0 && reveal) {
      const p = this.position(panel, i);
      if (Math.min(p.x, p.y) < 8 || Math.max(p.x, p.y) > panel.size - 8) {
        this.view.x = panel.one.x[i] / 10000;
        this.view.y = 1 - panel.one.y[i] / 10000;
        this.clamp();
        this.draw();
      }
    }
    this.say();
  }

  say() {
    if (this.node < 0 || !this.held) return void (this.status.textContent = "");
    const words = this.panels.map((panel) => `${panel.one.label}: ${this.predicted(panel.one)}`);
    this.status.textContent = `${this.facts().join(", ")}. Predicted: ${words.join("; ")}.`;
  }

  facts() {
    const { group, node } = this;
    return [`${group.unit} ${group.node[node]}`, className(group, group.y[node]), domainName(group, group.domain[node]), data.sets[group.split[node]].name];
  }

  predicted(one) {
    const { node } = this;
    return `${className(this.group, one.prediction[node])}, ${one.prediction[node] === this.group.y[node] ? "right" : "wrong"}`;
  }

  drawLegend() {
    const { kinds, ends, word } = this.kinds(this.group.maps[0]);
    if (!kinds) {
      const bar = make("span", { class: "bar" });
      bar.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map(gradient).join(",")})`;
      const line = make("span");
      line.append(make("span", {}, `${word} ${ends[0]} `), bar, make("span", {}, ` ${ends[1]}, by rank`));
      return this.legend.replaceChildren(line);
    }
    const there = new Set(this.by === "error" ? [0, 1] : this.kinds(this.group.maps[0]).of);
    this.legend.replaceChildren(...kinds.map((kind, i) => {
      const entry = make("button", { type: "button", "aria-pressed": "true" });
      const canvas = make("canvas", { width: "28", height: "28", "aria-hidden": "true" });
      const c = canvas.getContext("2d");
      c.fillStyle = kind.color;
      c.beginPath();
      SHAPES[kind.shape](c, 14, 14, 8);
      c.fill();
      entry.append(canvas, make("span", {}, kind.name));
      entry.hidden = !there.has(i);
      entry.addEventListener("click", () => {
        const off = !this.muted.has(i);
        if (off) this.muted.add(i); else this.muted.delete(i);
        entry.setAttribute("aria-pressed", String(!off));
        this.draw();
      });
      return entry;
    }));
  }

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.paint(); });
  }

  paint() {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim(), ground = style.getPropertyValue("--ground").trim();
    for (const panel of this.panels) {
      const { canvas, one } = panel, size = canvas.clientWidth, dense = window.devicePixelRatio || 1;
      if (!size) continue;
      panel.size = size;
      const pixels = Math.round(size * dense);
      if (canvas.width !== pixels) canvas.width = canvas.height = pixels;
      // One finger scrolls the page while the whole map is seen, and moves the map when it is not.
      canvas.style.touchAction = this.view.k > 1 ? "none" : "pan-y";
      const c = canvas.getContext("2d");
      c.setTransform(dense, 0, 0, dense, 0, 0);
      c.clearRect(0, 0, size, size);
      this.points(c, panel, ground);
      this.ring(c, panel, ink);
      this.tell(panel);
    }
  }

  points(c, panel, ground) {
    const { one, size } = panel, n = one.x.length, found = this.kinds(one);
    const radius = (n > 1200 ? 2.2 : n > 400 ? 2.8 : 3.8) * Math.min(2.4, this.view.k ** 0.35);
    const shapes = new Map();
    for (let i = 0; i < n; i++) {
      const p = this.position(panel, i);
      if (p.x < -9 || p.y < -9 || p.x > size + 9 || p.y > size + 9 || this.isMuted(panel, i)) continue;
      const kind = found.of[i];
      if (!shapes.has(kind)) shapes.set(kind, []);
      shapes.get(kind).push(p);
    }
    c.lineWidth = 0.6; // an edge of the ground's color keeps marks apart that lie on each other
    c.strokeStyle = ground;
    for (const kind of [...shapes.keys()].sort((a, b) => a - b)) {
      const look = found.kinds ? found.kinds[kind] : { color: found.scale(kind), shape: "o", alpha: 1 };
      c.globalAlpha = 0.9 * look.alpha;
      c.fillStyle = look.color;
      for (const p of shapes.get(kind)) {
        c.beginPath();
        SHAPES[look.shape](c, p.x, p.y, radius);
        c.fill();
        c.stroke();
      }
    }
    c.globalAlpha = 1;
  }

  ring(c, panel, ink) {
    if (this.node < 0) return;
    const p = this.position(panel, this.node);
    c.strokeStyle = ink;
    c.lineWidth = panel === this.active ? 2.5 : 2;
    c.beginPath();
    c.arc(p.x, p.y, 9, 0, 2 * Math.PI);
    c.stroke();
  }

  // The tip is on the panel under the pointer; every other panel has its prediction above it.
  tell(panel) {
    const { tip, said, one } = panel;
    said.textContent = this.node < 0 ? "last checkpoint" : `predicted ${this.predicted(one)}`;
    tip.hidden = panel !== this.active || this.node < 0;
    if (tip.hidden) return;
    const lines = [...this.facts(), `predicted ${this.predicted(one)}`];
    tip.replaceChildren(...lines.map((line, i) => make(i ? "span" : "b", {}, line)));
    const p = this.position(panel, this.node), right = p.x > panel.size / 2, low = p.y > panel.size / 2;
    tip.style.left = right ? "auto" : `${Math.max(0, p.x + 12)}px`;
    tip.style.right = right ? `${Math.max(0, panel.size - p.x + 12)}px` : "auto";
    tip.style.top = low ? "auto" : `${Math.max(0, p.y + 12)}px`;
    tip.style.bottom = low ? `${Math.max(0, panel.size - p.y + 12)}px` : "auto";
  }
}
