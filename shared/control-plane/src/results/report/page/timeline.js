// Every attempt as a bar: where it ran, how it ended, and what lay between.
const VISIBLE_ROWS = 40;
const ROW_PX = 15;

const zoneNames = () =>
  [...new Set(report.rows.flatMap((row) => row.attempts.map((attempt) => attempt.zone)).filter(Boolean))].sort();

const timelineOrders = {
  interrupted: (left, right) => right.interruptions - left.interruptions || left.index - right.index,
  best: (left, right) => left.rank - right.rank,
  index: (left, right) => left.index - right.index,
};

const attemptLines = (attempt) => [
  `${attempt.zone ?? "zone unknown"}${attempt.instance ? `, ${attempt.instance}` : ""}`,
  attempt.moved_from && `moved from ${attempt.moved_from}`,
  attempt.started_ms === null
    ? "never started"
    : `${time(attempt.started_ms)}${attempt.stopped_ms === null ? "" : `, ${duration((attempt.stopped_ms - attempt.started_ms) / 1000)}`}`,
  attempt.ending +
    (attempt.exit_code === null ? "" : `, exit code ${attempt.exit_code}`) +
    (attempt.reason ? `: ${attempt.reason}` : ""),
];

/** One datum an attempt: start, end, the trial's place, and the end of the attempt before. */
const attemptBars = (rows) => {
  const bars = [];
  rows.forEach((row, place) => {
    let before = null;
    for (const attempt of row.attempts) {
      const start = attempt.started_ms ?? attempt.stopped_ms;
      if (start === null) continue;
      const stop = attempt.stopped_ms ?? start;
      bars.push({ row, attempt, value: [start, stop, place, before ?? start, bars.length] });
      before = stop;
    }
  });
  return bars;
};

/** The bar, the wait before it (dashed where the workspace moved), and how it ended. */
const drawBar = (bar, api, colours, colour) => {
  const [start, stop, place, before] = bar.value;
  const [left, middle] = api.coord([start, place]);
  const right = api.coord([stop, place])[0];
  const waited = api.coord([before, place])[0];
  const height = Math.max(2, Math.min(12, api.size([0, 1])[1] * 0.7));
  const children = [];
  if (waited < left) {
    const style = {
      stroke: bar.attempt.moved_from ? colours.mark : colours.muted,
      lineWidth: bar.attempt.moved_from ? 2.5 : 1,
      lineDash: bar.attempt.moved_from ? [4, 3] : null,
    };
    children.push({ type: "line", shape: { x1: waited, y1: middle, x2: left, y2: middle }, style });
  }
  children.push({
    type: "rect",
    shape: { x: left, y: middle - height / 2, width: Math.max(1.5, right - left), height, r: 2 },
    style: { fill: colour(bar.attempt.zone), opacity: bar.attempt.ending === "running" ? 0.6 : 1 },
  });
  const size = Math.max(2.5, height / 2);
  const ends = {
    interrupted: [
      [0, -size],
      [size, 0],
      [0, size],
      [-size, 0],
    ],
    failed: [
      [-size, -size],
      [size, -size],
      [size, size],
      [-size, size],
    ],
  }[bar.attempt.ending];
  if (ends) {
    const points = ends.map(([x, y]) => [right + x, middle + y]);
    children.push({
      type: "polygon",
      shape: { points },
      style: {
        fill: bar.attempt.ending === "failed" ? colours.text : colours.mark,
        stroke: colours.surface,
        lineWidth: 1,
      },
    });
  }
  return { type: "group", children };
};

const drawTimeline = () => {
  const made = section("timeline", "Attempts over time");
  const zones = zoneNames();
  const withAttempts = report.rows.filter((row) => row.attempts.length > 0);
  if (attemptBars(withAttempts).length === 0) {
    made.append(make("p", { class: "muted" }, "No attempt has started yet."));
    return;
  }
  const isLong = withAttempts.length > VISIBLE_ROWS;
  const state = { order: isLong ? "interrupted" : "index" };
  const zoneColour = (colours) => (zone) =>
    zone ? colours.zones[zones.indexOf(zone) % colours.zones.length] : colours.unknown;
  const option = (colours) => {
    const rows = [...withAttempts].sort(timelineOrders[state.order]);
    const bars = attemptBars(rows);
    const colour = zoneColour(colours);
    return {
      grid: { left: 8, right: isLong ? 56 : 24, top: 12, bottom: 28, containLabel: true },
      xAxis: axis(colours, { type: "time", max: report.partial ? report.generated_ms : undefined }),
      yAxis: axis(colours, {
        type: "category",
        inverse: true,
        data: rows.map((row) => String(row.index)),
        name: "trial",
        nameLocation: "start",
        axisTick: { show: false },
        splitLine: { show: false },
      }),
      dataZoom: isLong
        ? [
            {
              type: "slider",
              yAxisIndex: 0,
              startValue: 0,
              endValue: VISIBLE_ROWS - 1,
              filterMode: "weakFilter",
              right: 8,
              width: 18,
              brushSelect: false,
              showDataShadow: false,
              showDetail: false,
              borderColor: colours.line,
              fillerColor: colours.line,
              handleStyle: { color: colours.accent },
            },
          ]
        : [],
      tooltip: {
        formatter: ({ value }) => {
          const { row, attempt } = bars[value[4]];
          return tip(`Trial ${row.index}, attempt ${attempt.number}`, ...attemptLines(attempt));
        },
      },
      series: [
        {
          type: "custom",
          clip: true,
          progressive: 0,
          encode: { x: [0, 1, 3], y: 2 },
          data: bars.map((bar) => bar.value),
          renderItem: (_, api) => drawBar(bars[api.value(4)], api, colours, colour),
        },
      ],
    };
  };
  const { totals } = report;
  const one = chart(
    "timeline-chart",
    `Timeline: ${plural(totals.attempts, "attempt")}, ${plural(totals.interruptions, "interruption")}, ${plural(totals.zone_moves, "move")} to another zone. The table below has every attempt.`,
    () => 60 + ROW_PX * Math.min(VISIBLE_ROWS, withAttempts.length),
    option,
  );
  const legend = make(
    "ul",
    { class: "legend" },
    zones.map((zone, at) => make("li", {}, swatch(`var(--zone-${at % 7})`), zone)),
    withAttempts.some((row) => row.attempts.some((attempt) => !attempt.zone))
      ? make("li", {}, swatch("var(--unknown)"), "zone unknown")
      : "",
    make("li", {}, mark("◆"), "interrupted"),
    make("li", {}, "■ failed"),
    make("li", {}, mark("┅"), "moved to another zone"),
    make("li", {}, "— waited in the same zone"),
  );
  made.append(
    isLong
      ? make(
          "div",
          { class: "controls" },
          choice(
            "Order",
            [
              ["interrupted", "most interrupted first"],
              ["best", "best first"],
              ["index", "by trial"],
            ],
            (value) => {
              state.order = value;
              one.draw();
            },
          ),
        )
      : "",
    legend,
    one.holder,
    alternative("Every attempt as a table", () =>
      table(
        "Attempts",
        ["trial", "attempt", "zone", "moved from", "start", "seconds", "ending", "exit code", "reason"],
        withAttempts.flatMap((row) =>
          row.attempts.map((attempt) =>
            [
              row.index,
              attempt.number,
              attempt.zone ?? "–",
              attempt.moved_from ?? "–",
              attempt.started_ms === null ? "–" : time(attempt.started_ms),
              attempt.started_ms === null || attempt.stopped_ms === null
                ? "–"
                : number((attempt.stopped_ms - attempt.started_ms) / 1000),
              attempt.ending,
              attempt.exit_code ?? "–",
              attempt.reason ?? "–",
            ].map(String),
          ),
        ),
        ["number", "number", "", "", "", "number", "", "number", "wrap"],
      ),
    ),
  );
  const noted = report.rows.filter((row) => row.notes);
  if (noted.length > 0)
    made.append(
      make("h3", {}, "Not as usual"),
      make(
        "ul",
        {},
        noted.slice(0, 100).flatMap((row) => row.notes.map((note) => make("li", {}, `Trial ${row.index}: ${note}`))),
      ),
    );
  return () => one.draw();
};

const mark = (sign) => {
  const made = make("span", { "aria-hidden": "true" }, sign);
  made.style.color = "var(--mark)";
  return made;
};
