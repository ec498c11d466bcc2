// All trials; sorts by every column, filters, and grows by a hundred rows at a time.
const PAGE_ROWS = 100;
// Paper is narrow, and cannot be scrolled.
const PAPER = { rows: 25, metrics: 2, parameters: 4 };

const statusOf = (row) => {
  if (row.stopped) return row.stopped;
  if (row.cancelled_by) return `cancelled by ${row.cancelled_by}`;
  return row.diverged ? `${row.status}, diverged: ${row.diverged}` : row.status;
};

const boardColumns = () => {
  const weights = (report.importance?.weights ?? []).map(({ name }) => name);
  const order = report.columns
    .map(({ name }) => name)
    .sort((left, right) => (weights.indexOf(left) + 1 || Infinity) - (weights.indexOf(right) + 1 || Infinity));
  const printed = new Set(order.slice(0, PAPER.parameters));
  const plain = (name, kind, value, text = (row) => shown(value(row))) => ({ name, kind, value, text });
  const columns = [
    plain("trial", "number", (row) => row.index),
    plain("rank", "number", (row) => row.rank),
    ...(report.sets ? [plain("set", "number", (row) => row.set)] : []),
    {
      ...plain("status", "text", statusOf),
      text: (row) => make("span", { class: `status ${row.diverged ? "failed" : row.status}` }, statusOf(row)),
    },
    ...report.metrics.map((name, at) => ({
      ...plain(name, "number", (row) => row.metrics[at]),
      off: at >= PAPER.metrics,
    })),
    ...report.columns.map(({ name, kind }, at) => ({
      ...plain(name, kind === "category" ? "text" : "number", (row) => row.parameters[at]),
      off: !printed.has(name),
    })),
    plain("attempts", "number", (row) => row.attempts.length),
    { ...plain("interruptions", "number", (row) => row.interruptions), off: true },
    plain(
      "time",
      "number",
      (row) => row.seconds,
      (row) => duration(row.seconds),
    ),
  ];
  if (report.cost) {
    columns.push(
      plain(
        "paid",
        "number",
        (row) => (row.cost ? row.cost.spot + row.cost.storage : null),
        (row) => (row.cost ? usd(row.cost.spot + row.cost.storage) : "not priced"),
      ),
    );
  }
  columns.push({
    ...plain(
      "files",
      "text",
      (row) => (hasEnded(row) ? row.index : null),
      (row) => linksOf(row),
    ),
    off: true,
  });
  return columns;
};

const classOf = ({ kind, off }) => (off ? `${kind} screen` : kind);

/** Numbers by size, texts by alphabet, what is missing last in either direction. */
const compared = (left, right, direction) => {
  if (left === null || right === null) return (left === null) - (right === null);
  if (typeof left === "number" && typeof right === "number") return direction * (left - right);
  return direction * String(left).localeCompare(String(right), "en", { numeric: true });
};

const leaderboard = { chosen: undefined, update: () => {} };

const drawLeaderboard = () => {
  const columns = boardColumns();
  const state = { by: 1, direction: 1, conditions: [], rows: PAGE_ROWS };
  const texts = report.rows.map((row) =>
    columns
      .map((column) => `${column.name}=${shown(column.value(row))}`)
      .join(" ")
      .toLowerCase(),
  );
  const body = make("tbody");
  const status = make("p", { class: "muted", role: "status", "aria-live": "polite" });
  const more = make(
    "button",
    {
      type: "button",
      click: () => {
        state.rows += PAGE_ROWS;
        update();
      },
    },
    `Show ${PAGE_ROWS} more`,
  );
  const all = make(
    "button",
    {
      type: "button",
      click: () => {
        state.rows = Infinity;
        update();
      },
    },
    "Show all",
  );
  const clear = make("button", { type: "button", click: () => clearRanges() }, "Show trials outside the ranges too");
  const headers = columns.map((column, at) =>
    make(
      "th",
      { scope: "col", class: classOf(column) },
      make("button", { type: "button", title: `Sort by ${column.name}`, click: () => sort(at) }, column.name),
    ),
  );
  const cells = (row) =>
    make(
      "tr",
      {},
      columns.map((column, at) =>
        make(
          at === 0 ? "th" : "td",
          {
            class: classOf(column),
            scope: at === 0 ? "row" : undefined,
            title: column.kind === "text" ? String(shown(column.value(row))) : undefined,
          },
          column.text(row),
        ),
      ),
    );

  // Made once: sorting a thousand rows then only moves them.
  const lines = new Map();
  const line = (row, place) => {
    if (!lines.has(row)) lines.set(row, cells(row));
    lines.get(row).className = place >= PAPER.rows ? "screen" : "";
    return lines.get(row);
  };
  const sort = (at) => {
    state.direction = state.by === at ? -state.direction : 1;
    state.by = at;
    update();
  };
  const update = () => {
    const { value, name } = columns[state.by];
    const fits = (row, at) =>
      (!leaderboard.chosen || leaderboard.chosen.has(row.index)) &&
      state.conditions.every((fitsRow) => fitsRow(row, texts[at]));
    const rows = report.rows
      .filter(fits)
      .sort((left, right) => compared(value(left), value(right), state.direction));
    const visible = rows.slice(0, state.rows);
    body.replaceChildren(...visible.map(line));
    headers.forEach((header, at) => {
      if (at === state.by) header.setAttribute("aria-sort", state.direction > 0 ? "ascending" : "descending");
      else header.removeAttribute("aria-sort");
    });
    status.textContent = `${plural(rows.length, "trial")}${rows.length < report.rows.length ? ` of ${grouped(report.rows.length)}` : ""}, ${grouped(visible.length)} shown, by ${name}, ${state.direction > 0 ? "ascending" : "descending"}.`;
    more.hidden = all.hidden = visible.length === rows.length;
    clear.hidden = !leaderboard.chosen;
  };
  leaderboard.update = update;

  const filter = make("input", {
    type: "search",
    placeholder: "failed optimizer=adam lr>0.01",
    input: (event) => {
      state.conditions = conditionsOf(event.target.value, columns);
      state.rows = PAGE_ROWS;
      update();
    },
  });
  section(
    "leaderboard",
    "Leaderboard",
    report.sets ? make("p", { class: "muted" }, "Each trial has the rank of its parameter set.") : undefined,
    report.counts.waiting > 0
      ? make("p", { class: "muted" }, "Trials that have not started yet have no row.")
      : undefined,
    make("div", { class: "controls" }, make("label", {}, "Filter", filter), clear),
    status,
    make(
      "p",
      { class: "paper" },
      `On paper: at most ${PAPER.rows} trials and the columns that matter most; leaderboard.csv has all.`,
    ),
    make(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Leaderboard" },
      make("table", {}, make("thead", {}, make("tr", {}, headers)), body),
    ),
    make("div", { class: "controls" }, more, all),
  );
  update();
};
