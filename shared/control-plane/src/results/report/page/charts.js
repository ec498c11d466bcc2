// What all charts share: colours that follow the page, size, tooltips, and drawing anew.
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK KR', sans-serif";
const PRINT_WIDTH_PX = 700;
const drawn = [];

const theme = () => {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: colour("text"),
    muted: colour("muted"),
    line: colour("line"),
    surface: colour("surface"),
    accent: colour("accent"),
    worst: colour("worst"),
    best: colour("best"),
    mark: colour("mark"),
    unknown: colour("unknown"),
    good: colour("good"),
    zones: [0, 1, 2, 3, 4, 5, 6].map((at) => colour(`zone-${at}`)),
  };
};

/** Between two `#rrggbb`, by a share from 0 to 1. */
const mixed = (from, to, share) => {
  const part = (text, at) => Number.parseInt(text.slice(at, at + 2), 16);
  const channel = (at) =>
    Math.round(part(from, at) + (part(to, at) - part(from, at)) * share)
      .toString(16)
      .padStart(2, "0");
  return `#${channel(1)}${channel(3)}${channel(5)}`;
};

/** A chart in its holder. `option` gets the colours and the width; `height` may be a function of nothing. */
const chart = (id, label, height, option) => {
  const holder = make("div", { id, class: "chart", role: "img", "aria-label": label });
  const made = { holder, instance: undefined, draw: undefined };
  made.draw = (width) => {
    const size = { width: width ?? holder.clientWidth, height: height() };
    holder.style.height = `${size.height}px`;
    if (made.instance) made.instance.resize(size);
    else made.instance = echarts.init(holder, null, { renderer: "svg", ...size });
    const colours = theme();
    const common = {
      animation: false,
      useUTC: true,
      backgroundColor: "transparent",
      textStyle: { fontFamily: FONT, color: colours.text },
      tooltip: {
        trigger: "item",
        confine: true,
        backgroundColor: colours.surface,
        borderColor: colours.line,
        padding: 8,
        textStyle: { color: colours.text, fontFamily: FONT },
        transitionDuration: 0,
      },
    };
    const given = option(colours, size.width);
    made.instance.setOption(
      { ...common, ...given, tooltip: { ...common.tooltip, ...given.tooltip } },
      { notMerge: true },
    );
  };
  drawn.push(made);
  return made;
};

const tip = (title, ...lines) =>
  make(
    "div",
    { class: "tip" },
    make("b", {}, title),
    lines.filter(Boolean).map((line) => make("div", {}, line)),
  );

const axis = (colours, more) => ({
  axisLine: { show: true, lineStyle: { color: colours.muted } },
  axisTick: { lineStyle: { color: colours.muted } },
  splitLine: { lineStyle: { color: colours.line } },
  minorSplitLine: { show: false },
  nameTextStyle: { color: colours.muted },
  ...more,
  axisLabel: { color: colours.text, hideOverlap: true, ...more.axisLabel },
});

/** Whether positive values span so much that an even axis would hide the small ones. */
const isWide = (least, greatest, factor) => least > 0 && greatest / least >= factor;

const redraw = (width) => drawn.forEach((one) => one.instance && one.draw(width));

const followThePage = () => {
  let waiting;
  let width = document.documentElement.clientWidth;
  addEventListener("resize", () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    clearTimeout(waiting);
    waiting = setTimeout(() => redraw(), 150);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());
  addEventListener("beforeprint", () => {
    document.documentElement.dataset.print = "";
    redraw(PRINT_WIDTH_PX);
  });
  addEventListener("afterprint", () => {
    delete document.documentElement.dataset.print;
    redraw();
  });
};
