// What all charts share: two layers in a container, drawing again, dragging, and what the pointer or a key points at.
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

/** Calls `move` while the pointer is held down, and `end` when it is let go. The container stays when a chart is drawn again. */
const drag = (container, event, move, end = () => {}) => {
  event.preventDefault();
  hideTooltip();
  const listening = new AbortController();
  const stop = (last) => {
    listening.abort();
    end(last);
  };
  container.setPointerCapture(event.pointerId);
  container.addEventListener("pointermove", move, { signal: listening.signal });
  for (const kind of ["pointerup", "pointercancel"]) container.addEventListener(kind, stop, { signal: listening.signal });
};

/** The pointer's place in the chart. */
const placeIn = (container, event) => {
  const { left, top } = container.getBoundingClientRect();
  return [event.clientX - left, event.clientY - top];
};

/** Something of a chart that keys work on. `id` is its name while the chart is drawn again and again. */
const control = (shape, id, name, attributes, onKey) => {
  const all = { "data-control": id, class: "control", role: "slider", tabindex: 0, "aria-label": name, ...attributes };
  return filled(shape, { ...all, keydown: (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !onKey(event.key)) return;
    event.preventDefault();
  } }, []);
};

/**
 * Shows a tooltip for one datum of a chart: under the pointer, or by arrow keys one after another. `find` gives the place
 * of the datum under the pointer, `anchor` where a datum lies, and `describe` its tooltip. The datum's shape is stressed: a
 * `copy` of it that is drawn on top, or the one that has its place as `data-at`.
 */
const explore = ({ container, above }, plot, name, { count, find, anchor, describe, copy }) => {
  const hint = svg("g", { class: "stressed" });
  let current = 0;
  const stress = (at) => {
    hint.replaceChildren(...(copy && at !== undefined ? [copy(at)] : []));
    above.querySelector(".pointed")?.classList.remove("pointed");
    above.querySelector(`[data-at="${at}"]`)?.classList.add("pointed");
  };
  const leave = () => {
    stress();
    hideTooltip();
  };
  const show = (at, place, stays) => {
    stress(at);
    const content = describe(at);
    showTooltip(content, place, stays);
    return tipText(content);
  };
  const step = (at) => {
    current = clamp(at, 0, count - 1);
    const [x, y] = anchor(current);
    const place = () => {
      const { left, top } = container.getBoundingClientRect();
      return [left + x, top + y];
    };
    plot.setAttribute("aria-valuetext", show(current, place, true));
    plot.setAttribute("aria-valuenow", current + 1);
  };
  const onKey = (key) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -count, End: count }[key];
    if (by !== undefined) step(current + by);
    if (key === "Escape") leave();
    return by !== undefined || key === "Escape";
  };
  control(plot, "plot", name, { "aria-valuemin": 1, "aria-valuemax": count, "aria-valuenow": 1 }, onKey);
  plot.classList.add("plot");
  plot.addEventListener("focus", () => plot.matches(":focus-visible") && step(current));
  plot.addEventListener("blur", leave);
  above.addEventListener("pointermove", (event) => {
    const at = event.buttons === 0 ? find(event, ...placeIn(container, event)) : undefined;
    if (at === undefined) leave();
    else show(at, () => [event.clientX, event.clientY], false);
  });
  above.addEventListener("pointerleave", leave);
  above.prepend(plot);
  above.append(hint);
};

/** For `find`: the place that the shape under the pointer, or a group around it, has as `data-at`. */
const dataAt = (event) => {
  const marked = event.target.closest("[data-at]");
  return marked ? Number(marked.dataset.at) : undefined;
};

const followThePage = () => {
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
    drawAgain(PRINT_WIDTH_PX);
  });
  addEventListener("afterprint", () => {
    delete document.documentElement.dataset.print;
    drawAgain();
  });
};
