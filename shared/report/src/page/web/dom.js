// Elements, numbers and times. Text from outside becomes text nodes here, and nothing else.
const report = JSON.parse(document.getElementById("data").textContent);
// Rows come from the best to the worst; not every one has a rank.
report.rows.forEach((row, at) => {
  row.place = at + 1;
});

/** The element with attributes, listeners and children; what is not an element among the children becomes text. */
const filled = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return element;
};
const make = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);

const plural = (count, one, many = `${one}s`) => `${grouped(count)} ${count === 1 ? one : many}`;
const grouped = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, "\u202f");

/** Five significant digits, without trailing zeros. */
const number = (value) => {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(3).replace(/\.?0+e/, "e");
  return String(Number.parseFloat(value.toPrecision(5)));
};
/** What follows a value with an uncertainty: two digits of it say enough. */
const uncertaintyText = (value) => (value === null ? "" : ` ± ${number(Number(value.toPrecision(2)))}`);
const shown = (value) => (value === null ? "–" : typeof value === "number" ? number(value) : value);
/** As the command line's: below a cent two significant digits, so that no amount but zero reads as zero. */
const usd = (value) => {
  const [sign, size] = value < 0 ? ["-", -value] : ["", value];
  if (size === 0) return "$0.00";
  if (size < 1e-6) return `${sign}<$0.000001`;
  const rounded = Number(size.toExponential(1));
  const decimals = rounded >= 0.01 ? 2 : 1 - Math.floor(Math.log10(rounded));
  return `${sign}$${size.toFixed(decimals)}`;
};
const percent = (share) => `${(share * 100).toFixed(Math.abs(share) < 0.1 ? 1 : 0)} %`;
const time = (ms) => `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC`;
/** As the command line's: two units, the smaller one only where it is not zero; below ten seconds with tenths. */
const duration = (seconds) => {
  const tenths = Math.round(seconds * 10) / 10;
  if (tenths < 10) return `${tenths} s`;
  const whole = Math.round(seconds);
  const units = [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ];
  const at = units.findIndex(([, size]) => whole >= size);
  const [[unit, size], [smaller, part]] = [units[at], units[at + 1] ?? []];
  const rest = part ? Math.floor((whole % size) / part) : 0;
  return `${Math.floor(whole / size)} ${unit}${rest > 0 ? ` ${String(rest).padStart(2, "0")} ${smaller}` : ""}`;
};

const main = document.querySelector("main");
const nav = document.querySelector("nav");

/** A section with its heading, entered in the navigation. */
const section = (id, title, ...children) => {
  nav.append(make("a", { href: `#${id}` }, title));
  const heading = make("h2", { id: `${id}-title` }, title);
  const made = make("section", { id, "aria-labelledby": `${id}-title` }, heading, ...children);
  main.append(made);
  return made;
};

/** A table of texts. `kinds` says of each column whether it is "number", "wrap" or neither. */
const table = (caption, names, rows, kinds = []) =>
  make(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    make(
      "table",
      {},
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          names.map((name, at) => make("th", { scope: "col", class: kinds[at] }, name)),
        ),
      ),
      make(
        "tbody",
        {},
        rows.map((row) =>
          make(
            "tr",
            {},
            row.map((cell, at) => make("td", { class: kinds[at] }, cell)),
          ),
        ),
      ),
    ),
  );

/** A table that is built when it is first opened: what a chart shows, for those who cannot see it. */
const alternative = (title, build) => {
  const made = make("details", {}, make("summary", {}, title));
  made.addEventListener("toggle", () => made.children.length === 1 && made.append(build()));
  return made;
};

const choice = (label, options, change) =>
  make(
    "label",
    {},
    label,
    make(
      "select",
      { change: (event) => change(event.target.value) },
      options.map(([value, text]) => make("option", { value }, text)),
    ),
  );
