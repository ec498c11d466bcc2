// Intervals that a person moves and resizes within limits: the ranges on axes, the window of a chart.

/** Moved as far as the limits let it. */
const movedInterval = ([from, to], by, [least, greatest]) => {
  const shift = clamp(by, least - from, greatest - to);
  return [from + shift, to + shift];
};

/** So many times as long, with the place `around` kept where it is. */
const zoomedInterval = ([from, to], factor, around, [least, greatest], [shortest, longest]) => {
  const size = clamp((to - from) * factor, shortest, Math.min(longest, greatest - least));
  const start = clamp(around - ((around - from) / (to - from)) * size, least, greatest - size);
  return [start, start + size];
};

/** One end moved, not beyond the limits nor closer to the other end than `shortest`. */
const resizedInterval = ([from, to], end, place, [least, greatest], [shortest, longest]) =>
  end === "from"
    ? [clamp(place, Math.max(least, to - longest), to - shortest), to]
    : [from, clamp(place, from + shortest, Math.min(greatest, from + longest))];

/** The window after a key was pressed on its slider; undefined for a key that means nothing to it. */
const windowAfterKey = (shown, key, { limits, sizes, step, initial }) => {
  const [from, to] = shown;
  const size = to - from;
  const by = {
    ArrowUp: -step(size),
    ArrowLeft: -step(size),
    ArrowDown: step(size),
    ArrowRight: step(size),
    PageUp: -size,
    PageDown: size,
    Home: limits[0] - from,
    End: limits[1] - to,
  }[key];
  if (by !== undefined) return movedInterval(shown, by, limits);
  const factor = { "+": 0.5, "=": 0.5, "-": 2, _: 2 }[key];
  if (factor !== undefined) return zoomedInterval(shown, factor, (from + to) / 2, limits, sizes);
  return key === "Escape" ? initial : undefined;
};

/** The range on an axis after a key, in shares of it; undefined for none. The first key makes one. */
const rangeAfterKey = (chosen, key, { step, first }) => {
  if (key === "Escape" || key === "Delete") return undefined;
  if (!chosen) return key === "ArrowDown" || key === "Home" ? [0, first] : [1 - first, 1];
  const [low, high] = chosen;
  const by = { ArrowUp: step, ArrowDown: -step, PageUp: 4 * step, PageDown: -4 * step, Home: -1, End: 1 }[key];
  if (by !== undefined) return movedInterval(chosen, by, [0, 1]);
  if (key === "ArrowLeft") return high - low > step * 1.5 ? [low + step, high] : chosen;
  return low > 1e-9 ? [Math.max(0, low - step), high] : [low, Math.min(1, high + step)];
};
const RANGE_KEYS = [
  "ArrowUp",
  "ArrowDown",
  "ArrowLeft",
  "ArrowRight",
  "PageUp",
  "PageDown",
  "Home",
  "End",
  "Escape",
  "Delete",
];
