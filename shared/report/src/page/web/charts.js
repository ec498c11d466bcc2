// What all charts share: two layers in a container, and drawing again.
const PRINT_WIDTH_PX = 700;
const MIN_WIDTH_PX = 320;
const charts = [];

/**
 * A chart. `paint` gets the layers and the size. What follows the pointer goes `above`, a layer of its own for the browser:
 * thousands of lines `below` are then not painted again with every move.
 */
const chart = (id, name, height, paint) => {
  const container = make("div", { id, class: "chart", role: "group", "aria-label": name });
  const draw = (given) => {
    const size = { width: Math.max(given ?? container.clientWidth, MIN_WIDTH_PX), height: height() };
    const focused = container.contains(document.activeElement) && document.activeElement.dataset.control;
    const [below, above] = ["below", "above"].map((layer) => svg("svg", { class: layer, ...size }));
    paint({ container, below, above }, size);
    hideTooltip();
    container.style.height = `${size.height}px`;
    container.replaceChildren(below, above);
    // A control that was drawn again keeps the focus.
    if (focused) container.querySelector(`[data-control="${focused}"]`)?.focus({ preventScroll: true });
  };
  const made = { container, draw };
  charts.push(made);
  return made;
};

const drawAgain = (width) => charts.forEach(({ container, draw }) => container.firstChild && draw(width));

/** Draws again what has changed its width. Before the page is printed, `drawRest` draws what has not been drawn yet. */
const followThePage = (drawRest) => {
  let waiting;
  let width = document.documentElement.clientWidth;
  addEventListener("resize", () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    clearTimeout(waiting);
    waiting = setTimeout(() => drawAgain(), 150);
  });
  addEventListener("beforeprint", () => {
    document.documentElement.dataset.print = "";
    drawRest();
    drawAgain(PRINT_WIDTH_PX);
  });
  addEventListener("afterprint", () => {
    delete document.documentElement.dataset.print;
    drawAgain();
  });
};
