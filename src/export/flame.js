// SPDX-License-Identifier: MIT OR Apache-2.0
// The script of flame graphs: it fits the graph to the window, zooms, searches and orders.  The state is in
// the address (#zoom=17&search=^json&widths=numbers&order=name), so that a link shows it again.
"use strict";
(() => {
const svg = (document.currentScript ?? document.documentElement).closest("svg"), area = svg.querySelector("#frames");
const icicle = svg.dataset.root === "top", bytes = svg.dataset.widths === "bytes";
const ROW = matchMedia("(pointer: coarse)").matches ? 26 : 18; // px
const LEAST = 0.4; // px: narrower frames are not drawn

/* ------------------------------------------------------------ the tree -- */

const path = [];
const frames = [...area.querySelectorAll(".f")].map((g, index) => {
  const [title, rect, text] = g.children, depth = +g.dataset.d, parent = path[depth - 1];
  const full = title.textContent.split(" \u2014 ")[0], name = full.replace(/ \[[^\]]*\]$/, "");
  const f = {
    g, rect, text, index, depth, parent, full, title: title.textContent, children: [],
    label: name.replace(/ \S*?([^\s/]+:\d+)$/, rect.hasAttribute("stroke") ? " $1" : ""), // with a line: sites
    weight: { bytes: +g.dataset.w, numbers: +g.dataset.cw },
  };
  path[depth] = f;
  parent?.children.push(f);
  return f;
});
const all = frames[0], frameOf = new Map(frames.map(f => [f.g, f]));

/* ----------------------------------------------------------- the state -- */

const usual = { zoom: "0", search: "", widths: "bytes", order: "heaviest" };
let state = {}, pattern, problem;

function read() {
  const before = state.zoom;
  state = { ...usual, ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) };
  if (state.widths !== "numbers") state.widths = "bytes";
  pattern = null;
  problem = "";
  try {
    if (state.search) pattern = new RegExp(state.search, "i");
  } catch (e) {
    problem = e.message;
  }
  for (const f of frames) f.hit = !!pattern && pattern.test(f.full);
  draw();
  if (state.zoom !== before && svg === document.documentElement) scrollTo(0, scrollFor(frames[state.zoom] ?? all));
}

// keep: the state before can be returned to with the browser's Back.
function change(what, keep) {
  const next = Object.entries({ ...state, ...what }).filter(([k, v]) => k in usual && String(v) !== usual[k]);
  const hash = "#" + new URLSearchParams(next.length ? next : { zoom: 0 }); // "#" alone would scroll to the top
  if (keep) location.hash = hash;
  else location.replace(hash);
}

/* ------------------------------------------------------------- drawing -- */

const [title, subtitle] = [...svg.querySelectorAll("#head text")].map(t => t.textContent);
svg.querySelector("#head").remove();
const foreign = document.createElementNS("http://www.w3.org/2000/svg", "foreignObject");
foreign.setAttribute("width", "100%");
const bar = foreign.appendChild(document.createElementNS("http://www.w3.org/1999/xhtml", "div"));
bar.className = "bar";
bar.innerHTML = `<h1></h1><p></p><div class="controls">
  <button id="widths" title="what the width of a frame is"></button>
  <button id="order" title="the order of frames that have the same caller"></button>
  <input id="search" type="search" placeholder="search: regular expression" aria-label="search functions"/>
  <button id="reset">reset zoom</button>
  <span id="matched" role="status"></span></div><p id="info"></p>`;
bar.querySelector("h1").textContent = title;
bar.querySelector("p").textContent = subtitle;
svg.insertBefore(foreign, area.nextSibling);
svg.removeAttribute("viewBox");
for (const f of frames) f.g.style.display = "none";
const [widths, order, field, reset, matched, info] =
  ["widths", "order", "search", "reset", "matched", "info"].map(id => bar.querySelector("#" + id));
const charWidth = (() => {
  const probe = area.appendChild(all.text.cloneNode());
  probe.textContent = "0".repeat(100);
  const width = probe.getComputedTextLength() / 100;
  probe.remove();
  return width || 7.3;
})();
let head, shown = []; // px above the frames; the drawn frames with their x and width

function y(f) {
  return head + ROW * (icicle ? f.depth : shown.deepest - f.depth);
}

// Where the frame is in view, with some of its callers.
function scrollFor(f) {
  return icicle ? y(f) - head - 3 * ROW : y(f) + 4 * ROW + 8 - innerHeight;
}

function ordered(f) {
  const of = c => c.weight[state.widths];
  return [...f.children].sort(state.order === "name" ? (a, b) => (a.full < b.full ? -1 : a.full > b.full)
                                                     : (a, b) => of(b) - of(a));
}

function place(f, x, w) {
  shown.push([f, x, w]);
  shown.deepest = Math.max(shown.deepest, f.depth);
  for (const c of ordered(f)) {
    const width = w * c.weight[state.widths] / f.weight[state.widths];
    if (width >= LEAST) place(c, x, width);
    x += width;
  }
}

function show(f, x, w, above) {
  const room = Math.floor((w - 6) / charWidth), top = y(f);
  f.g.style.display = "";
  f.g.classList.toggle("above", above);
  f.g.classList.toggle("hit", f.hit);
  for (const [key, value] of Object.entries({ x, y: top, width: Math.max(w - 0.5, LEAST), height: ROW - 1,
                                              "stroke-width": Math.min(1, w / 8) }))
    f.rect.setAttribute(key, value);
  f.text.setAttribute("x", x + 3);
  f.text.setAttribute("y", top + ROW / 2 + 4);
  f.text.textContent = room < 3 ? "" : f.label.length > room ? f.label.slice(0, room - 2) + ".." : f.label;
}

// The weight of the matching frames at and above f, in which none is counted within another.
function share(f) {
  return f.hit ? f.weight[state.widths] : f.children.reduce((sum, c) => sum + share(c), 0);
}

function draw() {
  const zoomed = frames[state.zoom] ?? all;
  widths.textContent = "widths: " + (bytes ? state.widths : "numbers");
  order.textContent = "order: " + (state.order === "name" ? "by name" : "heaviest first");
  reset.hidden = zoomed === all;
  if (field.value !== state.search) field.value = state.search;
  matched.textContent = problem || (pattern ? `matched: ${(100 * share(all) / all.weight[state.widths]).toFixed(1)}%` : "");
  info.textContent = zoomed === all ? "" : zoomed.title;
  for (const [f] of shown) f.g.style.display = "none";
  head = bar.offsetHeight;
  shown = [];
  shown.deepest = 0;
  for (let f = zoomed.parent; f; f = f.parent) shown.push([f, 0, width()]);
  place(zoomed, 0, width());
  svg.setAttribute("height", head + (shown.deepest + 1) * ROW + 8);
  foreign.setAttribute("height", head);
  for (const [f, x, w] of shown) show(f, x, w, f.depth < zoomed.depth);
  follow();
}

function width() {
  return svg.getBoundingClientRect().width;
}

// The controls stay in view.
function follow() {
  foreign.setAttribute("y", Math.max(0, -svg.getBoundingClientRect().top));
}

/* -------------------------------------------------------------- events -- */

area.onclick = e => change({ zoom: frameOf.get(e.target.closest(".f"))?.index ?? state.zoom }, true);
area.onmouseover = e => info.textContent = frameOf.get(e.target.closest(".f"))?.title ?? "";
area.onmouseleave = () => info.textContent = state.zoom === "0" ? "" : frames[state.zoom]?.title;
widths.hidden = !bytes;
widths.onclick = () => change({ widths: state.widths === "bytes" ? "numbers" : "bytes" });
order.onclick = () => change({ order: state.order === "name" ? "heaviest" : "name" });
reset.onclick = () => change({ zoom: 0 }, true);
field.oninput = () => change({ search: field.value });
addEventListener("keydown", e => {
  const inField = e.target === field;
  if (!inField && (e.key === "/" || ((e.ctrlKey || e.metaKey) && e.key === "f"))) {
    e.preventDefault();
    field.focus();
    field.select();
  } else if (e.key === "Escape") {
    change(inField ? { search: "" } : { zoom: 0 });
    field.blur();
  } else if (inField && e.key === "Enter") {
    field.blur();
  }
});
addEventListener("hashchange", read);
addEventListener("resize", draw);
addEventListener("scroll", follow);
read();
draw(); // again: the first time there was no scroll bar
})();
