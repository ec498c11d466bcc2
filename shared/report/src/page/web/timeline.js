// Every attempt over time, a row a trial. Its rows can be scrolled and its time zoomed.
const VISIBLE_ROWS = 40;
const ROW_PX = 15;
const SHORTEST_MS = 1_000;

const zoneNames = () =>
  [...new Set(report.rows.flatMap((row) => row.attempts.map((attempt) => attempt.zone)).filter(Boolean))].sort();

const timelineOrders = {
  interrupted: (left, right) => right.interruptions - left.interruptions || left.index - right.index,
  best: (left, right) => left.place - right.place,
  index: (left, right) => left.index - right.index,
};

/** From the first start to the last end; a partial report's goes to its own time. */
const wholeTime = (bars) => {
  const [first, last] = extentOf(bars.flatMap(({ start, stop }) => [start, stop]));
  const end = report.partial ? report.generated_ms : last;
  return [first, Math.max(end, first + SHORTEST_MS)];
};

/** The chart of these rows; `rows` gives them in their order, `changed` is called when the time is zoomed or whole again. */
const timelineChart = (rows, views, zones, changed) => {
  const zoneClass = (zone) => (zone ? `zone-${zones.indexOf(zone) % 7}` : "unknown");
  const isLong = views.rows.limits[1] > VISIBLE_ROWS;
  const paint = (layers, size) => {
    const visible = rows().slice(...views.rows.shown);
    const names = bandScale(visible.map(({ index }) => index).reverse());
    names.ticks = names.ticks.map(({ value }) => ({ value, text: String(value) })).reverse();
    const left = 20 + Math.max(labelsWidth(names.ticks, 120), textWidth("trial"));
    const area = plotArea(size, { left, right: isLong ? 56 : 24, top: 24, bottom: 68 });
    const span = views.time.shown;
    const scale = scaleAlong(area, (most) => timeScale(span, most));
    layers.below.append(
      horizontalAxis(area, scale, { title: `from ${time(span[0])}` }),
      verticalAxis(area, names, { grid: false, marks: false }),
      label("trial", { class: "end muted", x: tenth(area.left - LABEL_GAP_PX), y: area.top - 8 }),
    );
    const x = (value) => clamp(scale.place(value), -1, 2) * area.width;
    const y = ({ row }) => area.height * (1 - names.place(row.index));
    const height = clamp(names.size * area.height * 0.7, 2, 12);
    const bars = attemptBars(visible).filter(({ before, stop }) => stop >= span[0] && before <= span[1]);
    // An SVG inside of the SVG cuts off what lies beyond the span.
    const inner = svg("svg", { x: tenth(area.left), y: area.top, width: tenth(area.width), height: area.height });
    inner.append(...bars.map((bar, at) => attemptShape(bar, at, x, y(bar), height, zoneClass)));
    layers.above.append(inner);
    const plot = box(area.left, area.top, area.width, area.height);
    explore(layers, plot, "Attempts", {
      count: bars.length,
      find: dataAt,
      anchor: (at) => [
        area.left + clamp((x(bars[at].start) + x(bars[at].stop)) / 2, 0, area.width),
        area.top + y(bars[at]),
      ],
      describe: (at) => attemptTip(bars[at]),
    });
    zoomByPointer(layers, area, views.time, change("time"));
    timelineSliders(layers, size, area, views, change);
  };
  const { totals } = report;
  const name = `Timeline: ${plural(totals.attempts, "attempt")}, ${plural(totals.interruptions, "interruption")}, ${plural(totals.zone_moves, "move")} to another zone. The table below has every attempt.`;
  const one = chart("timeline-chart", name, () => 92 + ROW_PX * Math.min(VISIBLE_ROWS, views.rows.limits[1]), paint);
  const change = (which) => (shown) => {
    views[which].shown = which === "rows" ? shown.map(Math.round) : shown;
    one.draw();
    changed();
  };
  return { ...one, resetTime: () => change("time")(views.time.initial) };
};

const timelineLegend = (zones, hasUnknown) =>
  make(
    "ul",
    { class: "legend" },
    zones.map((zone, at) => make("li", {}, swatch(`var(--zone-${at % 7})`), zone)),
    hasUnknown ? make("li", {}, swatch("var(--unknown)"), "zone unknown") : "",
    make("li", {}, mark("◆"), "interrupted"),
    make("li", {}, "■ failed"),
    make("li", {}, mark("┅"), "moved to another zone"),
    make("li", {}, "— waited in the same zone"),
  );

const timelineNotes = () => {
  const noted = report.rows.filter((row) => row.notes);
  const line = (row) => row.notes.map((note) => make("li", {}, `Trial ${row.index}: ${note}`));
  return noted.length === 0 ? [] : [make("h3", {}, "Warnings"), make("ul", {}, noted.slice(0, 100).flatMap(line))];
};

const drawTimeline = () => {
  const made = section("timeline", "Attempts over time");
  const withAttempts = report.rows.filter((row) => row.attempts.length > 0);
  const bars = attemptBars(withAttempts);
  if (bars.length === 0) {
    made.append(make("p", { class: "muted" }, "No attempt has started yet."));
    return;
  }
  const zones = zoneNames();
  const hasUnknown = bars.some(({ attempt }) => !attempt.zone);
  const isLong = withAttempts.length > VISIBLE_ROWS;
  let rows;
  const sort = (order) => {
    rows = [...withAttempts].sort(timelineOrders[order]);
  };
  sort(isLong ? "interrupted" : "index");
  const views = timelineViews(withAttempts.length, wholeTime(bars));
  const whole = make("button", { type: "button", hidden: true, click: () => one.resetTime() }, "Show the whole time");
  const changed = () => {
    const { shown, limits } = views.time;
    whole.hidden = shown[0] === limits[0] && shown[1] === limits[1];
  };
  const one = timelineChart(() => rows, views, zones, changed);
  const orders = [
    ["interrupted", "most interrupted first"],
    ["best", "best first"],
    ["index", "by trial"],
  ];
  const reorder = (order) => {
    sort(order);
    one.draw();
  };
  made.append(
    make(
      "p",
      { class: "screen" },
      "Drag over a span to zoom in on it, or turn the wheel with Ctrl; a double click shows the whole time again. By keyboard: Tab to a slider; arrows move it, + and − zoom, Escape shows all again.",
    ),
    make("div", { class: "controls" }, isLong ? choice("Order", orders, reorder) : "", whole),
    timelineLegend(zones, hasUnknown),
    one.container,
    alternative("Every attempt as a table", () => attemptsTable(withAttempts)),
    ...timelineNotes(),
  );
  return () => one.draw();
};

const mark = (sign) => {
  const made = make("span", { "aria-hidden": "true" }, sign);
  made.style.color = "var(--mark)";
  return made;
};
