// The axes of the parallel coordinates: scales, names and labels.
const NONE = "(none)";
// Closer axes have their names at a slant.
const CROWDED_PX = 120;
const AXIS_TICKS = 8;
// A category that must be cut to fewer says nothing.
const LEAST_LETTERS = 4;

const parameterScale = (kind, values) => {
  if (kind === "category") {
    const names = [...new Set(values)];
    return bandScale(names.sort((left, right) => left.localeCompare(right, "en", { numeric: true })));
  }
  const numbers = values.filter((value) => value !== null);
  const [least, greatest] = extentOf(numbers);
  // Whole numbers over a short range are mostly powers of two.
  const isBinary = greatest / least < 100 && numbers.every(Number.isInteger);
  return fittedScale([least, greatest], kind === "log", AXIS_TICKS, isBinary ? 2 : 10);
};

/** An axis for each column and one for the metric, each with its scale and every trial's place on it. */
const parallelAxes = (columns, rows) => {
  const axes = columns.map(({ name, kind, at }) => {
    const value = kind === "category" ? (row) => row.parameters[at] ?? NONE : (row) => row.parameters[at];
    return { name, kind, value, scale: parameterScale(kind, report.rows.map(value)) };
  });
  const metric = (row) => row.metrics[0];
  const extent = extentOf(rows.map(metric));
  axes.push({
    name: report.metrics[0],
    kind: "metric",
    value: metric,
    scale: fittedScale(extent, isWide(extent, 1000), AXIS_TICKS),
  });
  return axes.map((axis) => ({
    ...axis,
    places: Float64Array.from(rows, (row) => (axis.value(row) === null ? NaN : axis.scale.place(axis.value(row)))),
  }));
};

const parallelMargins = (spacing) =>
  spacing < CROWDED_PX
    ? { left: 40, right: 110, top: spacing < 45 ? 120 : 88, bottom: 24 }
    : { left: 75, right: 75, top: 44, bottom: 24 };

/** The name of an axis over it; at a slant where axes are close. */
const axisName = (name, x, area, spacing, width) => {
  if (spacing >= CROWDED_PX)
    return label(
      name,
      { class: "name middle", x: tenth(x), y: area.top - 15 },
      Math.min(spacing - 12, 2 * Math.min(x, width - x)),
      600,
    );
  const degrees = Math.max(22, 70 - spacing);
  const [up, along] = [Math.sin((degrees * Math.PI) / 180), Math.cos((degrees * Math.PI) / 180)];
  const most = Math.min((area.top - 24) / up, (width - x - 10) / along);
  return label(
    name,
    { class: "name", transform: `translate(${tenth(x)} ${area.top - 12}) rotate(${-degrees})` },
    most,
    600,
  );
};

/** A tick's text if it fits, or the same number with an exponent; a number is not cut, as it would be another one. */
const tickText = ({ value, text }, kind, width) => {
  if (kind === "category")
    return shortened(text, width).length < LEAST_LETTERS && textWidth(text) > width ? undefined : text;
  return [text, value.toExponential().replace("e+", "e")].find((one) => textWidth(one) <= width);
};

const axisShape = ({ kind, scale }, x, area, spacing) => {
  // There is space next to the last axis, the one of the metric.
  const width = kind === "metric" ? 90 : Math.min(90, spacing - LABEL_GAP_PX - 3);
  const ticks = scale.ticks.map((tick) => ({ ...tick, at: area.y(scale.place(tick.value)), size: LINE_HEIGHT_PX }));
  return svg(
    "g",
    { class: `axis over ${kind}`, "aria-hidden": "true" },
    segment(x, area.top, x, area.bottom, "frame"),
    apart(ticks, 0).flatMap((tick) => {
      const text = tickText(tick, kind, width);
      const line = segment(x, tick.at, x + TICK_PX, tick.at, "frame");
      return text === undefined
        ? [line]
        : [line, label(text, { x: tenth(x + LABEL_GAP_PX), y: tenth(tick.at), dy: ".35em" }, width)];
    }),
  );
};
