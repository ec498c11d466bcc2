// Scales: a value's place on an axis, from 0 to 1, and back. Numbers in, numbers out.
const clamp = (value, least, greatest) => Math.min(Math.max(value, least), greatest);
const MAX = Number.MAX_VALUE;

/** The least and the greatest of the numbers; what is no finite number does not count. */
const extentOf = (values) => {
  let [least, greatest] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < least) least = value;
    if (value > greatest) greatest = value;
  }
  return least <= greatest ? [least, greatest] : [0, 1];
};

/** Whether positive values span so much that an even axis would hide the small ones. */
const isWide = ([least, greatest], factor) => least > 0 && greatest / least >= factor;

/** Equal values get an axis around them. */
const widened = ([least, greatest]) => {
  // Less than that a step would not change the number.
  if (greatest / 2 - least / 2 > Math.max(Math.abs(least), Math.abs(greatest)) * 1e-13) return [least, greatest];
  const half = Math.abs(least) / 2 || 1;
  return [clamp(least - half, -MAX, MAX), clamp(greatest + half, -MAX, MAX)];
};

const evenScale = (from, to, ticks) => ({
  // Halves: the difference of huge numbers of both signs would be infinite.
  place: (value) => (value / 2 - from / 2) / (to / 2 - from / 2),
  value: (share) => from * (1 - share) + to * share,
  ticks,
});

/** An even scale whose ends are ticks. */
const fittedEven = (extent, most) => {
  const [least, greatest] = widened(extent);
  const step = evenStep(least, greatest, most);
  const from = clamp(tidy(Math.floor(tidy(least / step)) * step), -MAX, MAX);
  const to = clamp(tidy(Math.ceil(tidy(greatest / step)) * step), -MAX, MAX);
  return evenScale(from, to, evenTicks(from, to, most + 1));
};

/** The nearest power of the base below or above, or 2 and 5 times one where there is not one decade between. */
const logBound = (value, round, base, isFine) => {
  const exponent = Number((Math.log(value) / Math.log(base)).toFixed(9));
  if (!isFine) return base === 10 ? power10(round(exponent)) : base ** round(exponent);
  const low = power10(Math.floor(exponent));
  const bounds = [1, 2, 5, 10].map((factor) => tidy(factor * low));
  return round === Math.ceil ? bounds.find((bound) => bound >= value) : bounds.findLast((bound) => bound <= value);
};

const fittedLog = ([least, greatest], most, base) => {
  const isFine = base === 10 && greatest / least < 10;
  // A bound beyond the smallest number is 0: the value itself then.
  const from = logBound(least, Math.floor, base, isFine) || least;
  const to = Math.min(logBound(greatest, Math.ceil, base, isFine) || greatest, MAX);
  const [low, high] = [Math.log(from), Math.log(to)];
  return {
    place: (value) => (Math.log(value) - low) / (high - low),
    value: (share) => Math.exp(low * (1 - share) + high * share),
    ticks: logTicks(from, to, most, base),
  };
};

/** A logarithmic scale where it is asked for and the values are positive and differ much, otherwise an even one. */
const fittedScale = (extent, isLog, most, base = 10) =>
  isLog && isWide(extent, 2) ? fittedLog(extent, most, base) : fittedEven(extent, most);

const timeScale = ([from, to], most) => evenScale(from, to, timeTicks(from, to, most));

/** A place of the same size for each name. */
const bandScale = (names) => {
  const places = new Map(names.map((name, at) => [name, (at + 0.5) / names.length]));
  return {
    place: (name) => places.get(name),
    value: (share) => names[clamp(Math.floor(share * names.length), 0, names.length - 1)],
    ticks: names.map((name) => ({ value: name, text: name })),
    size: 1 / names.length,
  };
};
