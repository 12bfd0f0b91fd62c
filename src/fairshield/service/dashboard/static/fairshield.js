/* Keeps a page up to date: whenever the service says that something has changed, the page is asked
   for again, and what differs is put in place.  On the page of a stream it also draws the plot. */
"use strict";
(() => {
  const AGAIN = 1000; // milliseconds between two refreshes, and before a new connection
  const MOST = 2000; // points that are kept
  const ROUNDING = 1e-9; // of biases

  document.documentElement.classList.add("script");
  const byId = (id) => document.getElementById(id);

  // Putting a new version of an element in place ------------------------------------------------

  // Elements are recognised by their ids, so that focus, selected text and scrolling stay.  What is
  // open is the reader's choice: the service never says so.
  const callbacks = { beforeAttributeUpdated: (name) => name !== "open" };

  function morph(old, wanted) {
    withoutSpace(old);
    withoutSpace(wanted);
    if (!old.isEqualNode(wanted)) Idiomorph.morph(old, wanted, { callbacks });
  }

  // Space between rows, which nobody sees: if it were matched as well, rows would be moved.
  function withoutSpace(part) {
    for (const parent of [part, ...part.querySelectorAll("tbody, .cards")])
      for (const node of [...parent.childNodes])
        if (node.nodeType === Node.TEXT_NODE && !node.data.trim()) node.remove();
  }

  // Refreshing ---------------------------------------------------------------------------------

  let loading = false;
  let again = false; // whether another refresh is wanted after the one under way
  let waiting = null; // for the next one that is due
  let last = -AGAIN;

  async function refresh() {
    if (loading) {
      again = true;
      return;
    }
    loading = true;
    do {
      again = false;
      last = performance.now();
      await load();
    } while (again);
    loading = false;
  }

  function refreshSoon() {
    waiting ??= setTimeout(() => {
      waiting = null;
      refresh();
    }, Math.max(0, last + AGAIN - performance.now()));
  }

  async function load() {
    let text;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (answer.redirected) location.reload(); // to where a key is asked for
      if (!answer.ok) return;
      text = await answer.text();
    } catch {
      return; // the stream of events finds out, and says so
    }
    const page = new DOMParser().parseFromString(text, "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const wanted = page.querySelector(`[data-live="${part.dataset.live}"]`);
      if (wanted) morph(part, wanted);
    }
    document.dispatchEvent(new Event("refreshed"));
  }

  // Events ---------------------------------------------------------------------------------------

  const live = byId("live");
  const lost = byId("lost");

  function show(state, words) {
    if (!live) return;
    live.dataset.state = state;
    live.textContent = words;
    lost.hidden = state !== "lost";
  }

  function listen(address) {
    let fresh = true; // a new connection tells everything, one that is resumed only what is new
    let known = -1; // the last entry that was told
    const events = new EventSource(address);
    events.addEventListener("open", () => show("live", "Live"));
    events.addEventListener("update", (event) => {
      const update = JSON.parse(event.data);
      const { seq } = update.stream?.state ?? { seq: -1 };
      if (seq < known) {
        // Another log under the same name: begin again.
        events.close();
        listen(address);
        return;
      }
      show("live", "Live");
      document.dispatchEvent(new CustomEvent("update", { detail: { update, fresh } }));
      fresh = false;
      known = seq;
      refreshSoon();
    });
    events.addEventListener("error", () => {
      show("lost", "Reconnecting");
      if (events.readyState === EventSource.CLOSED) setTimeout(() => listen(address), AGAIN);
    });
    addEventListener("pagehide", () => events.close(), { once: true });
    addEventListener("pageshow", ({ persisted }) => persisted && location.reload(), { once: true });
  }

  // Forms and links that change what is shown ----------------------------------------------------

  function ask() {
    const wanted = new URLSearchParams();
    for (const form of document.querySelectorAll("form[data-refresh]"))
      for (const [name, value] of new FormData(form)) if (value) wanted.set(name, value);
    history.replaceState(null, "", wanted.size ? `?${wanted}` : location.pathname);
    refresh();
  }

  let typing;
  for (const form of document.querySelectorAll("form[data-refresh]")) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      ask();
    });
    form.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => form.checkValidity() && ask(), 250);
    });
  }

  document.addEventListener("click", (event) => {
    const target = event.target.closest("a[data-refresh], [data-copy], [data-override]");
    if (!target) return;
    if (target.matches("a[data-refresh]")) {
      event.preventDefault();
      history.replaceState(null, "", new URL(target.href).search);
      refresh();
    } else if (target.dataset.copy) {
      copy(target);
    } else {
      override(target.dataset);
    }
  });

  async function copy(button) {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 1500);
  }

  // A person's decision -----------------------------------------------------------------------------

  const dialog = byId("override");
  let asked = null; // what is to be sent, and under which key: a second attempt has the same

  function override(data) {
    asked = { address: data.override, accepted: data.accept === "true", key: crypto.randomUUID() };
    byId("override-n").textContent = data.n;
    byId("override-to").textContent = asked.accepted ? "accept" : "reject";
    byId("override-note").value = "";
    byId("override-error").hidden = true;
    dialog.showModal();
  }

  byId("override-confirm")?.addEventListener("click", async (event) => {
    event.preventDefault();
    const error = byId("override-error");
    try {
      const answer = await fetch(asked.address, {
        method: "POST",
        headers: { "content-type": "application/json", "idempotency-key": asked.key },
        body: JSON.stringify({ accepted: asked.accepted, note: byId("override-note").value }),
      });
      if (!answer.ok) throw new Error((await answer.json()).detail);
      dialog.close();
      refresh();
    } catch (why) {
      error.textContent = `Not recorded: ${why.message}`;
      error.hidden = false;
    }
  });

  // The plot ------------------------------------------------------------------------------------------

  const place = byId("plot");
  const points = [[], [], []]; // decision, bias with the shield, bias without
  let plot = null;

  function take({ update: { series }, fresh }) {
    if (fresh) for (const column of points) column.length = 0;
    const [n, bias, without] = points;
    series.n.forEach((decision, i) => {
      // A decision that was overridden changes the counters of now, not those of then.
      const x = Math.max(decision, n.at(-1) ?? 0);
      if (x === n.at(-1)) for (const column of points) column.pop();
      n.push(x);
      bias.push(series.measured_bias[i]);
      without.push(series.measured_bias_unshielded[i]);
    });
    const extra = Math.max(0, n.length - MOST);
    for (const column of points) column.splice(0, extra);
  }

  function range() {
    const [n] = points;
    const last = n.at(-1) ?? 1;
    const length = Number(place.dataset.length);
    const windows = Number(document.querySelector("#span input:checked").value);
    const first = windows ? Math.floor(last / length - windows + 1) * length : n[0] ?? 0;
    return [Math.max(first, (n[0] ?? 1) - 1, 0), Math.max(last, length)];
  }

  // Of a window that has just begun the bias says nothing: its first tenth is not drawn.
  function drawn() {
    const [n, ...lines] = points;
    const length = Number(place.dataset.length);
    const told = (x) => place.dataset.unit !== "window" || 10 * ((x - 1) % length) >= length;
    return [n, ...lines.map((line) => line.map((value, i) => (told(n[i]) ? value : null)))];
  }

  const limit = () => Number(place.dataset.limit);

  // All ends of windows in view are on the scale; what happens inside of windows may be cut off.
  function top() {
    const [from, to] = range();
    const length = Number(place.dataset.length);
    const [n, ...lines] = points;
    const values = ends().flatMap((end) => (end.n < from || end.n > to ? [] : [end.bias, end.without]));
    n.forEach((x, i) => x >= from && x % length === 0 && values.push(...lines.map((line) => line[i])));
    const least = limit() ? Math.max(Math.min(1, 4 * limit()), 1.25 * limit()) : 1;
    return values.reduce((most, value) => Math.max(most, 1.06 * (value ?? 0)), least);
  }

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function ends() {
    const number = (text) => (text === "" ? null : Number(text));
    return [...document.querySelectorAll("#window-ends [data-n]")].map(({ dataset }) => ({
      n: Number(dataset.n),
      bias: number(dataset.bias),
      without: number(dataset.without),
      exempt: dataset.verdict === "exempt",
    }));
  }

  function drawBelow(u) {
    const { left, top: above, width, height } = u.bbox;
    u.ctx.save();
    u.ctx.setLineDash([]);
    if (limit()) {
      const y = u.valToPos(limit(), "y", true);
      u.ctx.fillStyle = colour("--band");
      u.ctx.fillRect(left, y, width, above + height - y);
    }
    u.ctx.strokeStyle = colour("--window");
    u.ctx.lineWidth = devicePixelRatio;
    for (const { n } of ends()) {
      if (n < u.scales.x.min || n > u.scales.x.max) continue;
      const x = Math.round(u.valToPos(n, "x", true)) + 0.5;
      line(u.ctx, x, above, x, above + height);
    }
    u.ctx.restore();
  }

  function line(ctx, x0, y0, x1, y1) {
    ctx.beginPath();
    ctx.moveTo(x0, y0);
    ctx.lineTo(x1, y1);
    ctx.stroke();
  }

  function drawAbove(u) {
    u.ctx.save();
    u.ctx.setLineDash([]);
    if (limit()) {
      const { left, width } = u.bbox;
      const y = Math.round(u.valToPos(limit(), "y", true)) + 0.5;
      u.ctx.strokeStyle = colour("--band-edge");
      u.ctx.lineWidth = devicePixelRatio;
      line(u.ctx, left, y, left + width, y);
    }
    for (const end of ends()) {
      if (end.n < u.scales.x.min || end.n > u.scales.x.max) continue;
      const fair = !limit() || end.without <= limit() + ROUNDING;
      dot(u, end.n, end.without, fair || end.exempt ? "--beside" : "--without");
      dot(u, end.n, end.bias, end.exempt ? "--beside" : "--with");
    }
    u.ctx.restore();
  }

  function dot(u, n, value, name) {
    if (value === null) return;
    const x = u.valToPos(n, "x", true);
    const y = u.valToPos(value, "y", true);
    u.ctx.beginPath();
    u.ctx.arc(x, y, 5 * devicePixelRatio, 0, 2 * Math.PI);
    u.ctx.fillStyle = colour(name);
    u.ctx.strokeStyle = colour("--panel");
    u.ctx.lineWidth = 1.5 * devicePixelRatio;
    u.ctx.fill();
    u.ctx.stroke();
  }

  const decimals = (value) => (value === null || value === undefined ? "∞" : value.toFixed(3));

  function readOut(u) {
    const i = u.cursor.idx;
    const [n, bias, without] = points;
    byId("readout").textContent =
      i === null || i === undefined || n[i] === undefined
        ? `What counts is the end of a ${place.dataset.unit}. Point at the plot for numbers.`
        : `After decision ${n[i].toLocaleString("en")}: ${decimals(bias[i])} with shield, ${decimals(without[i])} without`;
  }

  function draw() {
    plot?.destroy();
    place.replaceChildren();
    const axis = { stroke: colour("--muted"), ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const grid = { stroke: colour("--grid"), width: 1 };
    const smooth = { spanGaps: false, points: { show: false } };
    plot = new uPlot(
      {
        ...size(),
        padding: [10, 32, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
        scales: { x: { time: false, range }, y: { range: () => [0, top()] } },
        axes: [
          { ...axis, grid: { show: false }, space: 70, size: 30, values: (u, ticks) => ticks.map((t) => (t % 1 ? "" : t.toLocaleString("en"))) },
          { ...axis, grid, size: 44, space: 45 },
        ],
        series: [
          {},
          { ...smooth, stroke: colour("--with"), width: 1.75 },
          { ...smooth, stroke: colour("--beside"), width: 1.5, dash: [5, 4] },
        ],
        hooks: { drawClear: [drawBelow], draw: [drawAbove], setCursor: [readOut] },
      },
      drawn(),
      place,
    );
    readOut(plot);
  }

  function redraw() {
    if (!plot) return; // nothing has been heard yet
    plot.setData(drawn());
    readOut(plot);
  }

  function size() {
    return { width: place.clientWidth, height: place.clientHeight };
  }

  function startPlot() {
    document.addEventListener("update", ({ detail }) => {
      take(detail);
      if (plot) redraw();
      else draw();
      place.dataset.points = points[0].length;
      place.dataset.top = top();
    });
    document.addEventListener("refreshed", redraw);
    byId("span").addEventListener("change", redraw);
    new ResizeObserver(() => plot?.setSize(size())).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plot && draw());
  }

  if (place) startPlot();
  if (document.body.dataset.events) listen(document.body.dataset.events);
})();
