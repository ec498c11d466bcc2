// Axes: lines, marks and labels that do not overlap.
const TICK_PX = 5;
const LABEL_GAP_PX = 8;
const LINE_HEIGHT_PX = 14;
// Along a horizontal axis. Labels that touch almost are hard to tell apart.
const [LEAST_TICKS, MOST_TICKS] = [2, 12];
const TICK_GAP_PX = 16;

/** Whether labels in their order stand side by side, each with its place and size in pixels. */
const areApart = (labels, gap) =>
  labels.every(
    ({ at, size }, place) =>
      place === 0 || Math.abs(at - labels[place - 1].at) >= (size + labels[place - 1].size) / 2 + gap,
  );

/** The labels that can stand side by side: all, or every second one, and so on. */
const apart = (labels, gap) => {
  for (let every = 1; every < labels.length; every++) {
    const kept = labels.filter((_, place) => place % every === 0);
    if (areApart(kept, gap)) return kept;
  }
  return labels.slice(0, 1);
};

/** The pixels between which a plot lies, with its scales' places as functions. */
const plotArea = ({ width, height }, margin) => {
  const area = { left: margin.left, top: margin.top, right: width - margin.right, bottom: height - margin.bottom };
  return {
    ...area,
    whole: width,
    width: area.right - area.left,
    height: area.bottom - area.top,
    x: (share) => area.left + share * (area.right - area.left),
    y: (share) => area.bottom - share * (area.bottom - area.top),
  };
};

/** How wide the labels of a vertical axis are. */
const labelsWidth = (ticks, most) =>
  Math.min(most, Math.max(0, ...ticks.map(({ text }) => textWidth(text.slice(0, MAX_LABEL)))));

const verticalAxis = (area, scale, { title, grid = true, most = Infinity, marks = true }) => {
  const ticks = scale.ticks.map((tick) => ({ ...tick, at: area.y(scale.place(tick.value)), size: LINE_HEIGHT_PX }));
  return svg(
    "g",
    { class: "axis", "aria-hidden": "true" },
    grid ? ticks.map(({ at }) => segment(area.left, at, area.right, at, "grid")) : [],
    marks ? ticks.map(({ at }) => segment(area.left - TICK_PX, at, area.left, at, "frame")) : [],
    segment(area.left, area.top, area.left, area.bottom, "frame"),
    apart(ticks, 0).map(({ at, text }) =>
      label(text, { class: "end", x: tenth(area.left - LABEL_GAP_PX), y: tenth(at), dy: ".35em" }, most),
    ),
    title
      ? label(title, { class: "muted", x: Math.max(4, tenth(area.left)), y: area.top - 14 }, area.width)
      : undefined,
  );
};

/** The labels of a horizontal axis. One at its end does not leave the chart. */
const labelsAlong = (area, { ticks, place }) =>
  ticks.map(({ value, text }) => {
    const size = textWidth(text);
    return { text, size, at: clamp(area.x(place(value)), size / 2, area.whole - size / 2) };
  });

/** The scale with the most ticks whose labels stand side by side along the area. `make` gets the most ticks it may have. */
const scaleAlong = (area, make) => {
  for (let most = MOST_TICKS; most > LEAST_TICKS; most--) {
    const scale = make(most);
    if (areApart(labelsAlong(area, scale), TICK_GAP_PX)) return scale;
  }
  return make(LEAST_TICKS);
};

const horizontalAxis = (area, scale, { title, grid = true }) => {
  const ticks = scale.ticks.map(({ value }) => area.x(scale.place(value)));
  return svg(
    "g",
    { class: "axis", "aria-hidden": "true" },
    grid ? ticks.map((at) => segment(at, area.top, at, area.bottom, "grid")) : [],
    ticks.map((at) => segment(at, area.bottom, at, area.bottom + TICK_PX, "frame")),
    segment(area.left, area.bottom, area.right, area.bottom, "frame"),
    apart(labelsAlong(area, scale), LABEL_GAP_PX).map(({ at, text }) =>
      label(text, { class: "middle", x: tenth(at), y: area.bottom + 18 }),
    ),
    title ? label(title, { class: "middle muted", x: tenth(area.x(0.5)), y: area.bottom + 35 }, area.width) : undefined,
  );
};
