// One line a trial, in the parallel coordinates and in the curves.
const NEAR_PX = 8;
// Above it lines are drawn fainter, so that the crowd can be seen through.
const CROWD = 300;

/** How good a value is among all, from 0 (worst) to 1 (best): by rank, so that an outlier does not take the colours. */
const goodness = () => {
  const values = report.rows
    .filter((row) => row.metrics[0] !== null)
    .map((row) => row.metrics[0])
    .sort((left, right) => left - right);
  const places = new Map(values.map((value, at) => [value, values.length > 1 ? at / (values.length - 1) : 1]));
  return (value) => (report.ranking?.maximize ? places.get(value) : 1 - places.get(value));
};

/** A path through `[x, y, x, y, …]`, with a gap where there is no number; a point alone becomes a dot. */
const pathThrough = (points) => {
  let path = "";
  let isDrawing = false;
  for (let at = 0; at < points.length; at += 2) {
    if (Number.isNaN(points[at + 1])) {
      isDrawing = false;
      continue;
    }
    const isAlone = !isDrawing && !Number.isFinite(points[at + 3]);
    path += `${isDrawing ? "L" : "M"}${tenth(points[at])} ${tenth(points[at + 1])}${isAlone ? "h0" : ""}`;
    isDrawing = true;
  }
  return path;
};

/** How far a place is from the piece of a line between two points. */
const distanceTo = (x, y, x1, y1, x2, y2) => {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const length = dx * dx + dy * dy;
  const share = length === 0 ? 0 : clamp(((x - x1) * dx + (y - y1) * dy) / length, 0, 1);
  return Math.hypot(x - x1 - share * dx, y - y1 - share * dy);
};

/** The first point of `[x, y, …]`, x rising, that lies at or right of `x`. */
const pointFrom = (points, x) => {
  let [low, high] = [0, points.length / 2];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[2 * middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
};

const distanceToLine = (points, x, y) => {
  let nearest = Infinity;
  const last = points.length / 2 - 1;
  for (let at = Math.max(0, pointFrom(points, x - NEAR_PX) - 1); at <= last && points[2 * at] <= x + NEAR_PX; at++) {
    const next = Number.isNaN(points[2 * at + 3]) || at === last ? at : at + 1;
    const distance = distanceTo(x, y, points[2 * at], points[2 * at + 1], points[2 * next], points[2 * next + 1]);
    if (distance < nearest) nearest = distance;
  }
  return nearest;
};

/** The place of the line nearest to the pointer; of two, the one on top. */
const nearestLine = (lines, x, y, isChosen) => {
  let [nearest, found] = [NEAR_PX, undefined];
  for (let at = lines.length - 1; at >= 0; at--) {
    if (!isChosen(lines[at].row)) continue;
    const distance = distanceToLine(lines[at].points, x, y);
    if (distance < nearest) [nearest, found] = [distance, at];
  }
  return found;
};

/** A trial's look: by how good it is, or apart from that scale. */
const lookOf = (row, winner, good) => {
  if (!report.ranking) return { kind: "unranked" };
  if (row === winner) return { kind: "winner" };
  return row.metrics[0] === null
    ? { kind: "unknown" }
    : { kind: "", share: `${Math.round(100 * good(row.metrics[0]))}%` };
};

const lineShape = ({ points, look }, more = "") => {
  const dot = points.length === 2 ? "dot" : "";
  const shape = svg("path", { class: `line ${look.kind} ${dot} ${more}`, d: pathThrough(points) });
  if (look.share) shape.style.setProperty("--good", look.share);
  return shape;
};

/** Lets the lines that are not chosen step back. Without a choice all are as they were. */
const stepBack = ({ container }, shapes, lines, chosen) => {
  container.classList.toggle("choosing", chosen !== undefined);
  shapes.forEach((shape, at) =>
    shape.classList.toggle("faint", chosen !== undefined && !chosen.has(lines[at].row.index)),
  );
};

/** Lines that can be pointed at; gives back their shapes. */
const drawLines = (layers, area, name, lines, isChosen) => {
  const shapes = lines.map((line) => lineShape(line));
  layers.container.classList.toggle("crowd", lines.length > CROWD);
  layers.below.append(svg("g", {}, shapes));
  // By keyboard from the best: it is drawn last.
  const line = (place) => lines[lines.length - 1 - place];
  explore(layers, box(area.left, area.top, area.width, area.height), name, {
    count: lines.length,
    find: (_, x, y) => {
      const found = nearestLine(lines, x, y, isChosen);
      return found === undefined ? undefined : lines.length - 1 - found;
    },
    anchor: (place) => [...line(place).points.slice(-2)],
    isLeftOut: (place) => !isChosen(line(place).row),
    describe: (place) => trialTip(line(place).row),
    copy: (place) => lineShape(line(place), "hovered"),
  });
  return shapes;
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
