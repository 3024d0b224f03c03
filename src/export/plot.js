// SPDX-License-Identifier: MIT OR Apache-2.0
// The script of plots: as wide as the window, with texts that fit.  All else is in percent of the width.
"use strict";
(() => {
const svg = (document.currentScript ?? document.documentElement).closest("svg");
const texts = [...svg.querySelectorAll("#title, .label")].map(e => [e, e.textContent]);
svg.setAttribute("width", "100%");
function fit() {
  const page = svg.getBoundingClientRect(), edge = 0.02 * page.width;
  for (const [e, text] of texts) {
    e.textContent = text;
    e.removeAttribute("dx");
    for (let n = text.length; n > 10 && e.getComputedTextLength() > page.width - 2 * edge; n--)
      e.textContent = text.slice(0, n) + "..";
    const box = e.getBoundingClientRect();
    const over = Math.max(page.left + edge - box.left, 0) || Math.min(page.right - edge - box.right, 0);
    if (over)
      e.setAttribute("dx", over);
  }
}
addEventListener("resize", fit);
fit();
})();
