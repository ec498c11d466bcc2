// A metric against the step, one line a trial.
const curves = { update: () => {} };

/** One trial's line, or a dot where it has one point only. */
const drawCurve = (points, api, style) => {
  const places = [];
  for (let at = 0; at < points.length; at += 2) places.push(api.coord([points[at], points[at + 1]]));
  if (places.length === 1) {
    const [[cx, cy]] = places;
    return { type: "circle", shape: { cx, cy, r: 3 }, style: { ...style, fill: style.stroke } };
  }
  const emphasis = { style: { lineWidth: 4, opacity: 1 } };
  return { type: "polyline", shape: { points: places }, style, emphasis };
};

const drawCurves = () => {
  const made = section("curves", "Metric against step");
  const names = [...new Set(report.curves.map((curve) => curve.metric))].map((at) => [at, report.metrics[at]]);
  if (names.length === 0) {
    made.append(
      make(
        "p",
        { class: "muted" },
        "No curves were recorded: training code that prints name=value lines, best with step= or epoch=, gets them.",
      ),
    );
    return;
  }
  const rows = new Map(report.rows.map((row) => [row.index, row]));
  const good = goodness();
  const winner = best()?.row;
  const state = { metric: names[0][0], most: Infinity, log: undefined };
  const lines = () =>
    report.curves
      .filter((curve) => curve.metric === state.metric)
      .map((curve) => ({ ...curve, row: rows.get(curve.index) }))
      .filter(({ row }) => row.rank <= state.most)
      .sort((left, right) => right.row.rank - left.row.rank);
  const extent = (points, from) => {
    let [least, greatest] = [Infinity, -Infinity];
    for (let at = from; at < points.length; at += 2) {
      least = Math.min(least, points[at]);
      greatest = Math.max(greatest, points[at]);
    }
    return [least, greatest];
  };
  const colour = (row, colours) => {
    if (!report.ranking) return colours.accent;
    if (row === winner) return colours.mark;
    return row.metrics[0] === null ? colours.unknown : mixed(colours.worst, colours.best, good(row.metrics[0]));
  };
  const style = (row, colours, crowded) => {
    const isChosen = !leaderboard.chosen || leaderboard.chosen.has(row.index);
    const usual = row === winner || leaderboard.chosen ? 1 : crowded ? 0.4 : 0.75;
    const stroke = colour(row, colours);
    return { fill: "none", stroke, lineWidth: row === winner ? 3 : 1.3, opacity: isChosen ? usual : 0.04 };
  };
  const option = (colours) => {
    const visible = lines();
    const extents = visible.map(({ points }, at) => [...extent(points, 0), ...extent(points, 1), at]);
    const least = Math.min(...extents.map((values) => values[2]));
    const greatest = Math.max(...extents.map((values) => values[3]));
    const isLog = least > 0 && (state.log ?? isWide(least, greatest, 1000));
    return {
      grid: { left: 8, right: 24, top: 34, bottom: 30, containLabel: true },
      xAxis: axis(colours, { type: "value", scale: true, name: "step", nameLocation: "middle", nameGap: 26 }),
      yAxis: axis(colours, {
        type: isLog ? "log" : "value",
        scale: true,
        name: report.metrics[state.metric],
        nameTextStyle: { color: colours.muted, align: "left" },
        axisLabel: { formatter: number },
      }),
      tooltip: { formatter: ({ dataIndex }) => trialTip(visible[dataIndex].row) },
      series: [
        {
          type: "custom",
          clip: true,
          encode: { x: [0, 1], y: [2, 3] },
          data: extents,
          renderItem: (_, api) => {
            const { points, row } = visible[api.value(4)];
            return drawCurve(points, api, style(row, colours, visible.length > 300));
          },
        },
      ],
    };
  };
  const label = `Curves of ${plural(new Set(report.curves.map((curve) => curve.index)).size, "trial")} against the step. The table below has first, extreme and last values.`;
  const one = chart("curves-chart", label, () => 400, option);
  curves.update = () => one.instance && one.draw();
  const set = (change) => (value) => {
    change(value);
    one.draw();
  };
  made.append(
    make(
      "div",
      { class: "controls" },
      choice(
        "Metric",
        names,
        set((value) => {
          state.metric = Number(value);
        }),
      ),
      choice(
        "Trials",
        [
          ["Infinity", "all"],
          ["10", "the best 10"],
          ["50", "the best 50"],
        ],
        set((value) => {
          state.most = Number(value);
        }),
      ),
      choice(
        "Scale",
        [
          ["", "as fits"],
          ["log", "logarithmic"],
          ["even", "even"],
        ],
        set((value) => {
          state.log = value === "" ? undefined : value === "log";
        }),
      ),
    ),
    report.ranking ? ramp() : "",
    one.holder,
    alternative("The curves as a table", () =>
      table(
        "Curves",
        ["trial", "metric", "points", "first", "smallest", "largest", "last"],
        report.curves.map(({ metric, index, points }) =>
          [
            index,
            report.metrics[metric],
            points.length / 2,
            number(points[1]),
            ...extent(points, 1).map(number),
            number(points[points.length - 1]),
          ].map(String),
        ),
        ["number", "", "number", "number", "number", "number", "number"],
      ),
    ),
  );
  return () => one.draw();
};
