// Makes open pages live: asks for what is new, draws the charts, answers keys. Every page reads without it.
"use strict";
(function () {
  const byId = (id) => document.getElementById(id);
  let held = false;
  let lastHeard = Date.now();

  // --- asking again ------------------------------------------------------------------------------------------------
  // A region is left alone while it is hidden from view, while a person types or selects in it, or holds the page.
  function isInUse(region) {
    const active = document.activeElement;
    if (active && region.contains(active) && active.matches("input, textarea, select")) return true;
    const selection = document.getSelection();
    return !!selection && !selection.isCollapsed && region.contains(selection.anchorNode);
  }
  function askAgain() {
    if (document.hidden || held) return;
    const now = Date.now();
    for (const region of document.querySelectorAll(".live[data-every]")) {
      const due = Number(region.dataset.asked || 0) + 1000 * Number(region.dataset.every);
      if (now < due || region.dataset.waits || isInUse(region) || region.closest("details:not([open])")) continue;
      region.dataset.asked = String(now);
      region.dataset.waits = "1";
      htmx.trigger(region, "refresh");
    }
  }
  function note(text) {
    const stale = byId("stale");
    stale.hidden = !text;
    if (stale.textContent !== text) stale.textContent = text;
  }
  function unreached() {
    note("The console does not answer. What stands here is " + Math.round((Date.now() - lastHeard) / 1000) + " s old.");
  }
  document.addEventListener("htmx:afterRequest", (event) => {
    const region = event.detail.elt;
    if (region.dataset) delete region.dataset.waits;
    if (event.detail.successful) {
      lastHeard = Date.now();
      note(held ? "Held still. Press p to go on." : "");
    } else if (event.detail.xhr && event.detail.xhr.status) {
      note("The console refuses: " + (event.detail.xhr.status === 404 ? "what stands here is gone." : "status " + event.detail.xhr.status + "."));
    } else unreached();
  });
  // A link is the same one in the new answer by its address, a button by its form's fields.
  function nameOf(element) {
    const fields = element.form ? [...element.form.querySelectorAll("input[type=hidden]")].map((each) => each.name + "=" + each.value) : [];
    return [element.tagName, element.getAttribute("href") || "", element.parentElement.id, element.textContent, ...fields].join("|");
  }
  // What somebody began to select while the answer was under way is not thrown away either; what is open stays open.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const region = event.detail.target;
    if (isInUse(region)) { event.detail.shouldSwap = false; return; }
    const active = document.activeElement;
    region.kept = {
      open: [...region.querySelectorAll("details[open][id]")].map((each) => each.id),
      scrolled: [...region.querySelectorAll(".scroll")].map((each) => each.scrollLeft),
      focus: active && region.contains(active) ? nameOf(active) : null,
      row: selected ? selected.querySelector("a") && selected.querySelector("a").getAttribute("href") : null,
    };
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    const region = event.detail.target, kept = region.kept;
    if (!kept) return;
    for (const id of kept.open) if (byId(id)) byId(id).open = true;
    [...region.querySelectorAll(".scroll")].forEach((each, place) => { each.scrollLeft = kept.scrolled[place] || 0; });
    if (kept.focus) { const found = [...region.querySelectorAll("a, button, summary")].find((each) => nameOf(each) === kept.focus); if (found) found.focus({ preventScroll: true }); }
    if (kept.row) { const link = region.querySelector('[data-rows] a[href="' + CSS.escape(kept.row) + '"]'); select(link ? link.closest("tr") : null, false); }
    offerCopies();
  });

  // --- charts ------------------------------------------------------------------------------------------------------
  const plots = [];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  function shown(value, unit) {
    if (value === null || value === undefined) return "–";
    const text = Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : value.toLocaleString("en", { maximumFractionDigits: unit === "s" ? 2 : 1 });
    return text + (unit ? " " + unit : "");
  }
  // A figure between two gaps makes no line; it is drawn as a point.
  const lonely = (plot, series) => plot.data[series].flatMap((value, at, all) => value !== null && (all[at - 1] ?? null) === null && (all[at + 1] ?? null) === null ? [at] : []);
  // The axis begins with the first figures of any chart: ten minutes are shown at least, an hour at most.
  function begin(told) {
    const first = told.at.findIndex((_, at) => told.rate[at] > 0 || told.waiting[at] !== null);
    const end = told.at[told.at.length - 1];
    return first < 0 ? end - 600 : Math.max(told.at[0], Math.min(told.at[first] - 30, end - 600));
  }
  function draw(figure, told) {
    const names = figure.dataset.series.split(" "), colours = figure.dataset.colour.split(" ");
    const labels = (figure.dataset.names || "").split("|"), unit = figure.dataset.unit;
    const place = figure.querySelector(".plot");
    const data = [told.at, ...names.map((name) => told[name])];
    const caption = figure.querySelector("figcaption b") || figure.querySelector("figcaption").appendChild(document.createElement("b"));
    const latest = names.map((name) => told[name].slice(0, name === "rate" ? -1 : undefined).filter((value) => value !== null).pop());
    caption.textContent = latest.map((value, place) => (labels[place] ? labels[place] + " " : "") + shown(value, unit)).join(", ");
    const axis = { stroke: colour("muted"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const options = {
      width: place.clientWidth, height: 130, cursor: { y: false, points: { size: 6 } }, legend: { show: false },
      scales: { x: { range: () => [begin(told), told.at[told.at.length - 1] + 10] }, y: { range: (_, low, high) => [0, Math.max(high || 0, unit === "s" ? 0.1 : 1) * 1.08] } },
      axes: [
        { ...axis, size: 24, space: 60, values: (_, ticks) => ticks.map((tick) => new Date(tick * 1000).toISOString().slice(11, 16)) },
        { ...axis, size: 44, space: 28, values: (_, ticks) => ticks.map((tick) => (unit !== "s" && tick % 1 ? "" : tick.toLocaleString("en"))) },
      ],
      series: [{}, ...names.map((_, place) => ({ stroke: colour(colours[place]), width: 1.5, fill: place ? undefined : colour(colours[place] + "-soft"), points: { show: true, size: 4, filter: lonely }, spanGaps: false }))],
    };
    place.replaceChildren();
    const plot = new uPlot(options, data, place);
    plot.root.setAttribute("aria-hidden", "true");
    return plot;
  }
  async function chart(holder) {
    try {
      const answer = await fetch(holder.dataset.figures, { credentials: "same-origin" });
      if (!answer.ok) return;
      const told = await answer.json();
      for (const plot of plots.splice(0)) plot.destroy();
      for (const figure of holder.querySelectorAll("figure")) plots.push(draw(figure, told));
    } catch { /* the regions tell that the console does not answer */ }
  }
  function drawAll() { for (const holder of document.querySelectorAll("[data-figures]")) chart(holder); }
  let drawn = 0;
  function drawAgain() { if (!document.hidden && !held && Date.now() - drawn >= 10000) { drawn = Date.now(); drawAll(); } }

  // --- copying, also on plain HTTP ---------------------------------------------------------------------------------
  function offerCopies() { for (const button of document.querySelectorAll("[data-copy][hidden]")) button.hidden = false; }
  async function copy(button) {
    const text = await (await fetch(button.dataset.copy)).text();
    let done = false;
    if (navigator.clipboard && window.isSecureContext) done = await navigator.clipboard.writeText(text).then(() => true, () => false);
    if (!done) {
      const area = document.createElement("textarea");
      area.value = text; area.className = "hidden"; document.body.append(area); area.select();
      done = document.execCommand("copy"); area.remove();
    }
    button.textContent = done ? "Copied" : "Not copied: use JSON";
  }

  // --- keys --------------------------------------------------------------------------------------------------------
  let selected = null;
  function select(row, scroll = true) {
    if (selected) selected.classList.remove("selected");
    selected = row;
    if (row) { row.classList.add("selected"); if (scroll) row.scrollIntoView({ block: "nearest" }); }
  }
  function step(by) {
    const rows = [...document.querySelectorAll("[data-rows] tbody tr")];
    if (rows.length) select(rows[Math.min(rows.length - 1, Math.max(0, rows.indexOf(selected) + by))]);
  }
  function follow(link) { if (link) link.click(); return !!link; }
  const keys = {
    "?": () => { byId("keys").showModal(); return true; },
    "/": () => { const field = document.querySelector("[data-filter]"); if (field) { field.focus(); field.select(); } return !!field; },
    j: () => { step(1); return true; },
    k: () => { step(-1); return true; },
    Enter: () => document.activeElement === document.body || document.activeElement === byId("main") ? follow(selected && selected.querySelector("a")) : false,
    "[": () => follow(document.querySelector('a[rel="prev"]')),
    "]": () => follow(document.querySelector('a[rel="next"]')),
    p: () => { held = !held; note(held ? "Held still. Press p to go on." : ""); return true; },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
    if (event.target.matches("input, textarea, select")) { if (event.key === "Escape") event.target.blur(); return; }
    const used = /^[1-9]$/.test(event.key) ? follow(document.querySelector('[data-key="' + event.key + '"]')) : keys[event.key] && keys[event.key]();
    if (used) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const help = event.target.closest("[data-help]"), copied = event.target.closest("[data-copy]");
    if (help) byId("keys").showModal();
    if (copied) copy(copied);
  });

  // On a narrow screen the bar of pages scrolls; the open one must not be out of sight.
  function showOpenPage() {
    const bar = document.querySelector(".top nav"), open = bar && bar.querySelector("[aria-current]");
    if (open) bar.scrollLeft = open.offsetLeft - bar.offsetLeft - (bar.clientWidth - open.offsetWidth) / 2;
  }

  document.addEventListener("DOMContentLoaded", () => {
    showOpenPage();
    for (const button of document.querySelectorAll("[data-help]")) button.hidden = false;
    for (const region of document.querySelectorAll(".live[data-every]")) region.dataset.asked = String(Date.now());
    offerCopies();
    drawAgain();
    setInterval(askAgain, 250);
    setInterval(drawAgain, 1000);
    document.addEventListener("visibilitychange", () => { askAgain(); drawAgain(); });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
    let width = window.innerWidth;
    window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; drawAll(); } });
  });
})();
