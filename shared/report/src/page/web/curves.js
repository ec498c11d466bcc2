// A metric against the step, one line a trial.
const curves = { update: () => {} };

/** Every second number from `from` on: the steps, or the values. */
const everySecond = (points, from) => points.filter((_, at) => at % 2 === from);

/** The curves of a metric, of the best so many trials, the best last. */
const visibleCurves = (rows, { metric, most }) =>
  report.curves
    .filter((curve) => curve.metric === metric && rows.get(curve.index).place <= most)
    .map((curve) => ({ ...curve, row: rows.get(curve.index) }))
    .sort((left, right) => right.row.place - left.row.place);

const extentOfAll = (lines, from) => extentOf(lines.flatMap(({ points }) => extentOf(everySecond(points, from))));

const curvesChart = (state, winner, good) => {
  const rows = new Map(report.rows.map((row) => [row.index, row]));
  const isChosen = (row) => !leaderboard.chosen || leaderboard.chosen.has(row.index);
  let follow = () => {};
  const paint = (layers, size) => {
    const visible = visibleCurves(rows, state);
    const values = extentOfAll(visible, 1);
    const vertical = fittedScale(values, state.log ?? isWide(values, 1000), 8);
    const left = 20 + labelsWidth(vertical.ticks, 120);
    const area = plotArea(size, { left, right: 24, top: 34, bottom: 50 });
    const steps = extentOfAll(visible, 0);
    const horizontal = scaleAlong(area, (most) => fittedEven(steps, most));
    layers.below.append(
      horizontalAxis(area, horizontal, { title: "step" }),
      verticalAxis(area, vertical, { title: report.metrics[state.metric] }),
    );
    const place = (value, at) => (at % 2 === 0 ? area.x(horizontal.place(value)) : area.y(vertical.place(value)));
    const lines = visible.map(({ row, points }) => ({
      row,
      look: lookOf(row, winner, good),
      points: points.map(place),
    }));
    const shapes = drawLines(layers, area, "Curves, from the best trial", lines, isChosen);
    follow = () => stepBack(layers, shapes, lines, leaderboard.chosen);
    follow();
  };
  const count = new Set(report.curves.map((curve) => curve.index)).size;
  const name = `Curves of ${plural(count, "trial")} against the step. The table below has first, extreme and last values.`;
  curves.update = () => follow();
  return chart("curves-chart", name, () => 400, paint);
};

const curvesTable = () =>
  table(
    "Curves",
    ["trial", "metric", "points", "first", "smallest", "largest", "last"],
    report.curves.map(({ metric, index, points }) =>
      [
        index,
        report.metrics[metric],
        points.length / 2,
        number(points[1]),
        ...extentOf(everySecond(points, 1)).map(number),
        number(points[points.length - 1]),
      ].map(String),
    ),
    ["number", "", "number", "number", "number", "number", "number"],
  );

/** What the reader chooses: the metric, how many trials, and the scale. */
const curvesControls = (metrics, state, draw) => {
  const set = (change) => (value) => {
    change(value);
    draw();
  };
  const counts = [
    ["Infinity", "all"],
    ["10", "the best 10"],
    ["50", "the best 50"],
  ];
  const scales = [
    ["", "auto"],
    ["log", "logarithmic"],
    ["linear", "linear"],
  ];
  return make(
    "div",
    { class: "controls" },
    choice(
      "Metric",
      metrics,
      set((value) => {
        state.metric = Number(value);
      }),
    ),
    choice(
      "Trials",
      counts,
      set((value) => {
        state.most = Number(value);
      }),
    ),
    choice(
      "Scale",
      scales,
      set((value) => {
        state.log = value === "" ? undefined : value === "log";
      }),
    ),
  );
};

const drawCurves = () => {
  const made = section("curves", "Metric against step");
  const metrics = [...new Set(report.curves.map((curve) => curve.metric))].map((at) => [at, report.metrics[at]]);
  if (metrics.length === 0) {
    made.append(
      make(
        "p",
        { class: "muted" },
        "No curves were recorded: training code that prints name=value lines, best with step= or epoch=, gets them.",
      ),
    );
    return;
  }
  const state = { metric: metrics[0][0], most: Infinity, log: undefined };
  const one = curvesChart(state, best()?.row, goodness());
  made.append(
    curvesControls(metrics, state, one.draw),
    report.ranking ? ramp() : "",
    one.container,
    alternative("The curves as a table", curvesTable),
  );
  return () => one.draw();
};
