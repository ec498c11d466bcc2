// Where an axis has its marks, and what they say. Numbers in, numbers and texts out.
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MONTH = 30 * DAY;
const YEAR = 365 * DAY;
const TIME_STEPS = [
  ...[0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 7].map((count) => count * DAY),
  ...[1, 3, 6].map((count) => count * MONTH),
];
// 1970 began on a Thursday; weeks begin on a Monday.
const FIRST_MONDAY = 4 * DAY;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const power10 = (exponent) => Number(`1e${exponent}`);
/** The exponent of ten at or below a positive number. */
const exponentOf = (value) => Math.floor(Number(Math.log10(value).toFixed(9)));
/** What sums of binary fractions leave in the last digits goes. */
const tidy = (value) => Number(value.toPrecision(14));
const sequence = (first, last, step = 1) =>
  Array.from({ length: Math.max(0, Math.floor((last - first) / step) + 1) }, (_, at) => first + at * step);

/** 1, 2 or 5 times a power of ten, so that at most so many steps lie between. */
const evenStep = (from, to, most) => {
  const least = to / most - from / most;
  const power = power10(exponentOf(least)) || Number.MIN_VALUE;
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least * (1 - 1e-9));
};

const evenText = (value, step) => {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const digits = Math.min(15, Math.max(1, 1 + exponentOf(size) - exponentOf(step)));
  if (size >= 1e9 || size < 1e-4)
    return value
      .toExponential(digits - 1)
      .replace(/(\.\d*?)0+e/, "$1e")
      .replace(".e", "e");
  return String(Number(value.toPrecision(digits)));
};

const evenTicks = (from, to, most) => {
  const step = evenStep(from, to, most);
  return sequence(Math.ceil(tidy(from / step)), Math.floor(tidy(to / step))).map((count) => {
    const value = tidy(count * step);
    return { value, text: evenText(value, step) };
  });
};

/** Powers; within two decades 1-2-5 of them, within less even steps. */
const logTicks = (from, to, most, base) => {
  const exponent = (value) => Number((Math.log(value) / Math.log(base)).toFixed(9));
  const [first, last] = [Math.ceil(exponent(from)), Math.floor(exponent(to))];
  const power = (at) => (base === 10 ? power10(at) : base ** at);
  const factors = base === 10 && exponent(to) - exponent(from) <= 2 ? [1, 2, 5] : [1];
  const every = last > first ? Math.max(1, evenStep(first, last, most)) : 1;
  // One power more: 2 and 5 times it may lie within.
  const start = factors.length > 1 ? first - 1 : Math.ceil(first / every) * every;
  const values = sequence(start, last, every)
    .flatMap((at) => factors.map((factor) => factor * power(at)))
    .filter((value) => Number.isFinite(value) && value >= from * (1 - 1e-9) && value <= to * (1 + 1e-9));
  return values.length > 1
    ? values.map((value) => ({ value, text: evenText(value, value * 1e-4) }))
    : evenTicks(from, to, most);
};

/** The beginnings of months or years in UTC, so many months apart. */
const monthTicks = (from, to, months) => {
  const year = new Date(from).getUTCFullYear();
  const starts = sequence(0, (new Date(to).getUTCFullYear() - year + 1) * 12, months).map((month) =>
    Date.UTC(year, month),
  );
  return starts.filter((value) => value >= from && value <= to);
};

const timeText = (value, step) => {
  const date = new Date(value);
  const iso = date.toISOString();
  if (step >= YEAR) return iso.slice(0, 4);
  if (step >= MONTH) return `${MONTHS[date.getUTCMonth()]} ${iso.slice(0, 4)}`;
  if (value % DAY === 0) return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  return iso.slice(11, step >= MINUTE ? 16 : step >= SECOND ? 19 : 21);
};

/** Seconds to years, at the boundaries that clocks and calendars have. */
const timeTicks = (from, to, most) => {
  const least = (to - from) / most;
  const years = Math.max(1, evenStep(0, (to - from) / YEAR, most));
  const step = TIME_STEPS.find((one) => one >= least) ?? years * YEAR;
  const offset = step === 7 * DAY ? FIRST_MONDAY : 0;
  const values =
    step >= MONTH
      ? monthTicks(from, to, step >= YEAR ? 12 * years : step / MONTH)
      : sequence(Math.ceil((from - offset) / step), Math.floor((to - offset) / step)).map(
          (count) => offset + Math.round(count * step),
        );
  return values.map((value) => ({ value, text: timeText(value, step) }));
};
