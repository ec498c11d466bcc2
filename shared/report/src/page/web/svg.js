// SVG elements and labels. Colours come from classes and custom properties: dark mode and paper then need no script.
const SVG = "http://www.w3.org/2000/svg";
const LABEL_PX = 12;
// A name of thousands of letters is measured in its beginning only.
const MAX_LABEL = 200;
const labelFamily = getComputedStyle(document.body).fontFamily;
const measure = document.createElement("canvas").getContext("2d");

const svg = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

/** Pixels to a tenth: shorter paths, and nothing that an eye can tell. */
const tenth = (px) => Math.round(px * 10) / 10;

const textWidth = (text, weight = 400) => {
  measure.font = `${weight} ${LABEL_PX}px ${labelFamily}`;
  return measure.measureText(text).width;
};

/** The text, or as much of its beginning as fits. */
const shortened = (text, width, weight) => {
  const letters = [...text.slice(0, MAX_LABEL)];
  if (text.length <= MAX_LABEL && textWidth(text, weight) <= width) return text;
  let [fits, tooMany] = [0, letters.length + 1];
  while (tooMany - fits > 1) {
    const middle = (fits + tooMany) >> 1;
    if (textWidth(`${letters.slice(0, middle).join("")}…`, weight) <= width) fits = middle;
    else tooMany = middle;
  }
  return `${letters.slice(0, fits).join("")}…`;
};

/** A label no wider than so much; one that is cut has its whole text as its title. */
const label = (text, attributes, width = Infinity, weight = 400) => {
  const short = shortened(text, width, weight);
  return svg("text", attributes, short === text ? undefined : svg("title", {}, text), short);
};

const segment = (x1, y1, x2, y2, className) =>
  svg("line", { x1: tenth(x1), y1: tenth(y1), x2: tenth(x2), y2: tenth(y2), class: className });

const box = (x, y, width, height, attributes = {}) =>
  svg("rect", {
    x: tenth(x),
    y: tenth(y),
    width: tenth(Math.max(0, width)),
    height: tenth(Math.max(0, height)),
    ...attributes,
  });
