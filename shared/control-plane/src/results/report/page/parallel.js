// Each trial a line over its parameters to its metric. Ranges drawn on the axes choose trials everywhere.
const MAX_AXES = 24;
const NONE = "(none)";
// Closer axes have their names at a slant.
const CROWDED_PX = 120;
let clearBrush = () => {};

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

/** How good a value is among all, from 0 (worst) to 1 (best): by rank, so that an outlier does not take the colours. */
const goodness = () => {
  const values = report.rows
    .filter((row) => row.metrics[0] !== null)
    .map((row) => row.metrics[0])
    .sort((left, right) => left - right);
  const places = new Map(values.map((value, at) => [value, values.length > 1 ? at / (values.length - 1) : 1]));
  return (value) => (report.ranking?.maximize ? places.get(value) : 1 - places.get(value));
};

const margins = (width, axes) => {
  const spacing = (width - 150) / axes;
  return spacing < CROWDED_PX
    ? { left: 40, right: 110, top: spacing < 45 ? 120 : 88, bottom: 24 }
    : { left: 75, right: 75, top: 44, bottom: 24 };
};

/** Whole numbers over a short range are mostly powers of two. */
const scaleOf = ({ kind, at }) => {
  if (kind === "linear") return { type: "value", scale: true };
  const values = report.rows.map((row) => row.parameters[at]).filter((value) => value !== null);
  const [least, greatest] = [Math.min(...values), Math.max(...values)];
  const logBase = values.every(Number.isInteger) && greatest / least < 100 ? 2 : 10;
  // The library takes log10(0.01) for a little more than -2, and adds a power.
  const power = (value, round) => logBase ** round(Number((Math.log(value) / Math.log(logBase)).toFixed(9)));
  return { type: "log", logBase, min: power(least, Math.floor), max: power(greatest, Math.ceil) };
};

const parallelAxes = (columns, colours, spacing) => {
  const crowded = spacing < CROWDED_PX;
  const name = (text) => ({
    name: text,
    nameGap: 15,
    nameRotate: crowded ? Math.max(22, 70 - spacing) : 0,
    nameTruncate: { maxWidth: 115, ellipsis: "…" },
    nameTextStyle: { color: colours.text, fontWeight: 600, align: crowded ? "left" : "center" },
  });
  const look = axis(colours, {
    axisLabel: {
      formatter: (value) => shown(value),
      width: crowded ? 44 : 90,
      overflow: "truncate",
      textBorderColor: colours.surface,
      textBorderWidth: 3,
    },
  });
  const axes = columns.map((column, dim) => {
    if (column.kind !== "category") return { ...look, ...name(column.name), dim, ...scaleOf(column) };
    const values = [...new Set(report.rows.map((row) => row.parameters[column.at] ?? NONE))];
    return {
      ...look,
      ...name(column.name),
      dim,
      type: "category",
      data: values.sort((left, right) => left.localeCompare(right, "en", { numeric: true })),
    };
  });
  const values = report.rows.map((row) => row.metrics[0]).filter((value) => value !== null);
  const wide = isWide(Math.min(...values), Math.max(...values), 1000);
  return [
    ...axes,
    {
      ...look,
      ...name(report.metrics[0]),
      dim: columns.length,
      type: wide ? "log" : "value",
      scale: true,
      axisLine: { lineStyle: { color: colours.mark, width: 3 } },
    },
  ];
};

const drawParallel = () => {
  const columns = axisColumns();
  const rows = report.rows.filter((row) => report.ranking && row.metrics[0] !== null);
  const made = section("parallel", "Parameters and metric");
  const obstacle = !report.ranking
    ? "No metric ranks these trials: name one in the sweep file, as metric: {name: …, goal: …}."
    : rows.length === 0
      ? `No trial has reported ${report.metrics[0]} yet.`
      : columns.length === 0 && "All trials have the same parameters.";
  if (obstacle) {
    made.append(make("p", { class: "muted" }, obstacle));
    return;
  }
  const good = goodness();
  const winner = best()?.row;
  // The best last, so that they lie on top.
  const ordered = [...rows].sort(
    (left, right) => (left === winner) - (right === winner) || good(left.metrics[0]) - good(right.metrics[0]),
  );
  const opacity = rows.length > 300 ? 0.35 : 0.7;
  const label = `Parallel coordinates: ${plural(rows.length, "trial")} over ${plural(columns.length, "parameter")} and ${report.metrics[0]}. The leaderboard has the same figures.`;
  const option = (colours, width) => ({
    parallel: {
      ...margins(width, columns.length),
      parallelAxisDefault: {
        areaSelectStyle: { color: colours.mark, borderColor: colours.mark, opacity: 0.25, width: 16 },
      },
    },
    parallelAxis: parallelAxes(columns, colours, (width - 150) / columns.length),
    tooltip: { formatter: ({ dataIndex }) => trialTip(ordered[dataIndex]) },
    series: [
      {
        type: "parallel",
        progressive: 0,
        inactiveOpacity: 0.04,
        activeOpacity: Math.max(opacity, 0.6),
        emphasis: { lineStyle: { width: 4, opacity: 1 } },
        data: ordered.map((row) => ({
          value: [
            ...columns.map((column) => row.parameters[column.at] ?? (column.kind === "category" ? NONE : "-")),
            row.metrics[0],
          ],
          lineStyle:
            row === winner
              ? { color: colours.mark, width: 3, opacity: 1 }
              : { color: mixed(colours.worst, colours.best, good(row.metrics[0])), width: 1.3, opacity },
        })),
      },
    ],
  });
  const one = chart("parallel-chart", label, () => 420, option);
  made.append(
    make(
      "p",
      { class: "screen" },
      "Each line is a trial. Drag along an axis to choose a range: the leaderboard then shows the chosen trials only, and the curves below stress them. Click beside the range to drop it.",
    ),
    report.columns.length > MAX_AXES
      ? make("p", { class: "muted" }, `The ${MAX_AXES} most important of ${report.columns.length} parameters.`)
      : "",
    ramp(),
    one.holder,
  );
  const choose = () => {
    const series = one.instance.getModel().getSeriesByIndex(0);
    const isBrushed = series.getRawIndicesByActiveState("normal").length === 0;
    leaderboard.chosen = isBrushed
      ? new Set(series.getRawIndicesByActiveState("active").map((at) => ordered[at].index))
      : undefined;
    leaderboard.update();
    curves.update();
  };
  clearBrush = () => {
    one.draw();
    leaderboard.chosen = undefined;
    leaderboard.update();
    curves.update();
  };
  return () => {
    one.draw();
    one.instance.on("axisareaselected", choose);
  };
};

const ramp = () =>
  make(
    "ul",
    { class: "legend" },
    make("li", {}, "worst", make("span", { class: "ramp" }), "best"),
    make("li", {}, swatch("var(--mark)"), "the best trial"),
  );

const swatch = (colour) => {
  const made = make("span", { class: "swatch" });
  made.style.background = colour;
  return made;
};

const trialTip = (row) =>
  tip(
    `Trial ${row.index} · ${row.status}`,
    ...report.metrics.slice(0, 4).map((name, at) => `${name} = ${shown(row.metrics[at])}`),
    parametersOf(row)
      .slice(0, 24)
      .map(([name, value]) => `${name}=${value}`)
      .join(", "),
  );
