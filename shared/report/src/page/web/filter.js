// The leaderboard's filter: words that a row has, and comparisons such as lr>0.01.
const OPERATOR = /^(.*?)(>=|<=|!=|==|=|<|>)(.*)$/;

const comparisons = {
  "<": (left, right) => left < right,
  "<=": (left, right) => left <= right,
  ">": (left, right) => left > right,
  ">=": (left, right) => left >= right,
  "=": (left, right) => left === right,
  "==": (left, right) => left === right,
  "!=": (left, right) => left !== right,
};

/** What a row without the value fits: nothing but "is not". Texts are equal without regard to case. */
const compares = (value, operator, wanted) => {
  const number = Number(wanted);
  if (value === null) return operator === "!=";
  if (typeof value === "number" && !Number.isNaN(number)) return comparisons[operator](value, number);
  const text = String(value).toLowerCase();
  if (operator === "=") return text.includes(wanted);
  return ["==", "!="].includes(operator) && comparisons[operator](text, wanted);
};

/** One word as a test of a row and its text. A comparison whose value is not yet typed fits every row. */
const conditionOf = (word, columns) => {
  const [, name, operator, wanted] = OPERATOR.exec(word) ?? [];
  const named = columns.filter((column) => column.name.toLowerCase() === name);
  if (named.length === 0) return (_, text) => text.includes(word);
  if (wanted === "") return () => true;
  return (row) => named.some((column) => compares(column.value(row), operator, wanted));
};

/** All of a filter's words. Spaces around an operator do not matter. */
const conditionsOf = (typed, columns) =>
  typed
    .toLowerCase()
    .replace(/\s*(>=|<=|!=|==|=|<|>)\s*/g, "$1")
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => conditionOf(word, columns));
