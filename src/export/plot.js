// SPDX-License-Identifier: MIT OR Apache-2.0
// The script of plots: as wide as the window, with a title that fits.  All else is in percent of the width.
"use strict";
(() => {
const svg = (document.currentScript ?? document.documentElement).closest("svg"), title = svg.querySelector("#title"), text = title.textContent;
svg.setAttribute("width", "100%");
function fit() {
  title.textContent = text;
  for (let n = text.length; n > 10 && title.getComputedTextLength() > 0.96 * svg.getBoundingClientRect().width; n--)
    title.textContent = text.slice(0, n) + "..";
}
addEventListener("resize", fit);
fit();
})();
