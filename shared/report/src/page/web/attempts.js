// Attempts as bars: where each ran, how it ended, and what lay between.
const attemptLines = (attempt) => [
  `${attempt.zone ?? "zone unknown"}${attempt.instance ? `, ${attempt.instance}` : ""}`,
  attempt.moved_from && `moved from ${attempt.moved_from}`,
  attempt.started_ms === null
    ? "never started"
    : `${time(attempt.started_ms)}${attempt.stopped_ms === null ? "" : `, ${duration((attempt.stopped_ms - attempt.started_ms) / 1000)}`}`,
  attempt.fetch && `data: ${attempt.fetch}`,
  attempt.ending +
    (attempt.exit_code === null ? "" : `, exit code ${attempt.exit_code}`) +
    (attempt.reason ? `: ${attempt.reason}` : ""),
];

const attemptTip = ({ row, attempt }) => tip(`Trial ${row.index}, attempt ${attempt.number}`, ...attemptLines(attempt));

/** One datum an attempt: start, end, the trial's place, and the end of the attempt before. */
const attemptBars = (rows) => {
  const bars = [];
  rows.forEach((row, place) => {
    let before = null;
    for (const attempt of row.attempts) {
      const start = attempt.started_ms ?? attempt.stopped_ms;
      if (start === null) continue;
      const stop = attempt.stopped_ms ?? start;
      bars.push({ row, attempt, start, stop, place, before: before ?? start });
      before = stop;
    }
  });
  return bars;
};

/** How an attempt ended, as a mark at its end: a diamond or a square. */
const endMark = (ending, x, y, size) => {
  const corners = {
    interrupted: [0, -size, size, 0, 0, size, -size, 0],
    failed: [-size, -size, size, -size, size, size, -size, size],
  }[ending];
  const points = corners?.map((offset, at) => tenth(at % 2 === 0 ? x + offset : y + offset)).join(" ");
  return points && svg("polygon", { class: ending, points });
};

/** The bar, the wait before it (dashed where the workspace moved), and how it ended. `x` gives a time's pixel. */
const attemptShape = (bar, at, x, y, height, zoneClass) => {
  const { attempt } = bar;
  const [waited, left, right] = [x(bar.before), x(bar.start), x(bar.stop)];
  const running = attempt.ending === "running" ? "running" : "";
  return svg(
    "g",
    { "data-at": at },
    waited < left ? segment(waited, y, left, y, attempt.moved_from ? "moved" : "waited") : undefined,
    box(left, y - height / 2, Math.max(1.5, right - left), height, {
      rx: Math.min(2, height / 4),
      class: `attempt ${zoneClass(attempt.zone)} ${running}`,
    }),
    endMark(attempt.ending, right, y, Math.max(2.5, height / 2)),
  );
};

const attemptsTable = (rows) =>
  table(
    "Attempts",
    ["trial", "attempt", "zone", "moved from", "start", "seconds", "data", "ending", "exit code", "reason"],
    rows.flatMap((row) =>
      row.attempts.map((attempt) =>
        [
          row.index,
          attempt.number,
          attempt.zone ?? "–",
          attempt.moved_from ?? "–",
          attempt.started_ms === null ? "–" : time(attempt.started_ms),
          attempt.started_ms === null || attempt.stopped_ms === null
            ? "–"
            : number((attempt.stopped_ms - attempt.started_ms) / 1000),
          attempt.fetch ?? "–",
          attempt.ending,
          attempt.exit_code ?? "–",
          attempt.reason ?? "–",
        ].map(String),
      ),
    ),
    ["number", "number", "", "", "", "number", "", "", "number", "wrap"],
  );
