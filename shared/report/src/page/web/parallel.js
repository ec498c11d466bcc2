// Each trial a line over its parameters to its metric. Ranges on the axes choose trials everywhere.
const MAX_AXES = 24;
// While a range is dragged, what lies below follows when the pointer rests.
const REST_MS = 120;
let clearRanges = () => {};

/** The parameters that get an axis: all, or the most important ones, in the file's order. */
const axisColumns = () => {
  const columns = report.columns.map((column, at) => ({ ...column, at }));
  if (columns.length <= MAX_AXES) return columns;
  const order = new Map((report.importance?.weights ?? []).map(({ name }, place) => [name, place]));
  const place = ({ name }) => order.get(name) ?? Infinity;
  return [...columns]
    .sort((left, right) => place(left) - place(right))
    .slice(0, MAX_AXES)
    .sort((left, right) => left.at - right.at);
};

/** The indices of the trials inside of all ranges; undefined where there are none. */
const chosenTrials = (rows, axes, ranges) => {
  if (ranges.size === 0) return undefined;
  const isInside = (_, line) => [...ranges].every(([at, range]) => isWithin(axes[at].places[line], range));
  return new Set(rows.filter(isInside).map((row) => row.index));
};

/** Why there is nothing to draw; false where there is something. */
const parallelObstacle = (rows, columns) => {
  if (!report.ranking)
    return "No metric ranks these trials: name one in the sweep file, as metric: {name: …, goal: …}.";
  if (rows.length === 0) return `No trial has reported ${report.metrics[0]} yet.`;
  return columns.length === 0 && "All trials have the same parameters.";
};

/** The chart; `choose` gets the chosen trials whenever a range changes. */
const parallelChart = (rows, columns, winner, good, choose) => {
  const axes = parallelAxes(columns, rows);
  const looks = rows.map((row) => lookOf(row, winner, good));
  const ranges = new Map();
  const name = `Parallel coordinates: ${plural(rows.length, "trial")} over ${plural(columns.length, "parameter")} and ${report.metrics[0]}. The leaderboard has the same figures.`;
  const paint = (layers, size) => {
    const spacing = (size.width - 150) / columns.length;
    const area = plotArea(size, parallelMargins(spacing));
    const xs = axes.map((_, at) => area.x(at / columns.length));
    const lines = rows.map((row, line) => ({
      row,
      look: looks[line],
      points: Float64Array.from({ length: 2 * xs.length }, (_, at) =>
        at % 2 === 0 ? xs[at / 2] : area.y(axes[(at - 1) / 2].places[line]),
      ),
    }));
    let chosen = chosenTrials(rows, axes, ranges);
    const shapes = drawLines(layers, area, "Trials, from the best", lines, (row) => !chosen || chosen.has(row.index));
    const change = (isLast) => {
      chosen = chosenTrials(rows, axes, ranges);
      stepBack(layers, shapes, lines, chosen);
      choose(chosen, isLast);
    };
    stepBack(layers, shapes, lines, chosen);
    const distance = area.width / columns.length;
    layers.above.append(
      ...axes.map((axis, at) => axisShape(axis, xs[at], area, distance)),
      ...axes.map((axis, at) => axisName(axis.name, xs[at], area, spacing, size.width)),
      ...axes.map((axis, at) => {
        const place = { area, x: xs[at], width: Math.min(28, distance * 0.7) };
        return axisControl(layers.container, place, axis, at, ranges, change);
      }),
    );
  };
  return { ...chart("parallel-chart", name, () => 420, paint), ranges };
};

const drawParallel = () => {
  const columns = axisColumns();
  const good = goodness();
  const winner = best()?.row;
  // The best last, so that they lie on top.
  const rows = report.rows
    .filter((row) => report.ranking && row.metrics[0] !== null)
    .sort((left, right) => (left === winner) - (right === winner) || good(left.metrics[0]) - good(right.metrics[0]));
  const made = section("parallel", "Parameters and metric");
  const obstacle = parallelObstacle(rows, columns);
  if (obstacle) {
    made.append(make("p", { class: "muted" }, obstacle));
    return;
  }
  let waiting;
  const choose = (chosen, isLast) => {
    const follow = () => {
      leaderboard.chosen = chosen;
      leaderboard.update();
      curves.update();
    };
    clearTimeout(waiting);
    if (isLast) follow();
    else waiting = setTimeout(follow, REST_MS);
  };
  const one = parallelChart(rows, columns, winner, good, choose);
  clearRanges = () => {
    one.ranges.clear();
    one.draw();
    choose(undefined, true);
  };
  made.append(
    make(
      "p",
      { class: "screen" },
      "Each line is a trial. Drag along an axis to choose a range, on as many axes as you like: the leaderboard then shows the chosen trials only, and the curves below highlight them. Click on the axis to drop its range. By keyboard: Tab to an axis; ↑ and ↓ make and move a range, → and ← widen and narrow it, Escape drops it.",
    ),
    report.columns.length > MAX_AXES
      ? make("p", { class: "muted" }, `The ${MAX_AXES} most important of ${report.columns.length} parameters.`)
      : "",
    ramp(),
    one.container,
  );
  return () => one.draw();
};
