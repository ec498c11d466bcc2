// One tooltip for all charts, of text nodes. It stays inside the window.
const TOOLTIP_GAP_PX = 14;

const tip = (title, ...lines) =>
  make(
    "div",
    { class: "tip" },
    make("b", {}, title),
    lines.filter(Boolean).map((line) => make("div", {}, line)),
  );

/** What a tooltip says, as one text. */
const tipText = (shownTip) => [...shownTip.children].map((line) => line.textContent).join(", ");

const tooltip = make("div", { class: "tooltip", "aria-hidden": "true", hidden: true });
document.body.append(tooltip);

/** At a place of the window: to the right and below of it, or on the other side where there is no space. */
const placeTooltip = (x, y) => {
  const { width, height } = tooltip.getBoundingClientRect();
  const nextTo = (place, size, end) =>
    place + TOOLTIP_GAP_PX + size <= end ? place + TOOLTIP_GAP_PX : place - TOOLTIP_GAP_PX - size;
  const { clientWidth, clientHeight } = document.documentElement;
  tooltip.style.left = `${clamp(nextTo(x, width, clientWidth), 4, Math.max(4, clientWidth - width - 4))}px`;
  tooltip.style.top = `${clamp(nextTo(y, height, clientHeight), 4, Math.max(4, clientHeight - height - 4))}px`;
};

let onScroll;
const hideTooltip = () => {
  tooltip.hidden = true;
  onScroll = hideTooltip;
};
hideTooltip();
addEventListener("scroll", () => onScroll(), { passive: true });

/** `place` gives where in the window; it is asked again when the page is scrolled, if the tooltip `stays`. */
const showTooltip = (content, place, stays) => {
  tooltip.replaceChildren(content);
  tooltip.hidden = false;
  placeTooltip(...place());
  onScroll = stays ? () => placeTooltip(...place()) : hideTooltip;
};

/** Hides what the pointer has shown, and not what a key has: when a key scrolls the page, the pointer leaves what it was on. */
const hidePointed = () => onScroll === hideTooltip && hideTooltip();
