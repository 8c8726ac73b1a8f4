// Charts of the last minutes, drawn as SVG.

import { el, number, svg } from "./dom.js";

const WIDTH = 640, HEIGHT = 190, LEFT = 46, TOP = 8, BOTTOM = 20, COLORS = 8;
const colors = new Map();

function color(name) {
  if (!colors.has(name)) colors.set(name, `s${colors.size % COLORS}`);
  return colors.get(name);
}

/** Return the smallest of 1, 2, 5, 10, 20, … times a power of ten that is at least `value`. */
export function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= value * 0.999999);
}

/**
 * Return a figure of several lines over time.
 *
 * lines: each has `name` and `values`, with the latest value last; null is a gap.
 * options: `title`; `seconds` between two values; `format` of values; `stacked`: draw areas on top of each other.
 */
export function chart(lines, options) {
  const format = options.format ?? number;
  const drawn = lines.filter((line) => line.values.some((value) => value));
  const length = Math.max(0, ...lines.map((line) => line.values.length));
  const sums = Array.from({ length }, (_, at) => drawn.reduce((sum, line) => sum + (line.values[at] ?? 0), 0));
  const largest = options.stacked ? Math.max(0, ...sums)
    : Math.max(0, ...drawn.flatMap((line) => line.values.map((value) => value ?? 0)));
  const top = ceiling(largest);
  const x = (at) => LEFT + (length < 2 ? 0 : (at / (length - 1)) * (WIDTH - LEFT - 6));
  const y = (value) => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM);
  const points = (values, from = 0) => values.map((value, at) => `${x(at + from).toFixed(1)},${y(value).toFixed(1)}`);
  const shapes = options.stacked ? areas(drawn, length, points) : curves(drawn, points);
  const grid = [0, 0.5, 1].map((share) => svg("g", {},
    svg("line", { class: "grid", x1: LEFT, x2: WIDTH - 6, y1: y(share * top), y2: y(share * top) }),
    svg("text", { class: "tick", x: LEFT - 6, y: y(share * top) + 4, "text-anchor": "end" }, format(share * top))));
  const past = Math.round(Math.max(0, length - 1) * options.seconds);
  const axis = [
    svg("text", { class: "tick", x: LEFT, y: HEIGHT - 4 }, past >= 120 ? `${Math.round(past / 60)} min ago` : `${past} s ago`),
    svg("text", { class: "tick", x: WIDTH - 6, y: HEIGHT - 4, "text-anchor": "end" }, "now"),
  ];
  const latest = drawn.map((line) => `${line.name} ${format(line.values.at(-1) ?? null)}`);
  const picture = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${options.title}: ${latest.join(", ") || "none"}`,
  }, grid, axis, shapes);
  const legend = el("ul", { class: "legend" }, drawn.map((line) => el("li", {},
    el("span", { class: `swatch ${color(line.name)}` }), `${line.name} ${format(line.values.at(-1) ?? null)}`)));
  return el("figure", {}, el("figcaption", {}, options.title), picture, legend);
}

function areas(lines, length, points) {
  let below = Array(length).fill(0);
  return lines.map((line) => {
    const above = below.map((sum, at) => sum + (line.values[at] ?? 0));
    const outline = [...points(above), ...points(below).reverse()];
    below = above;
    return svg("polygon", { class: `area ${color(line.name)}`, points: outline.join(" ") });
  });
}

function curves(lines, points) {
  return lines.flatMap((line) => {
    const runs = [];
    line.values.forEach((value, at) => {
      if (value === null) return;
      const last = runs.at(-1);
      if (last && last.from + last.values.length === at) last.values.push(value);
      else runs.push({ from: at, values: [value] });
    });
    return runs.map((run) => {
      const shape = points(run.values, run.from);
      // A single value is drawn as a short dash.
      if (shape.length === 1) shape.push(shape[0].replace(/^[\d.]+/, (x) => Number(x) + 3));
      return svg("polyline", { class: `line ${color(line.name)}`, points: shape.join(" ") });
    });
  });
}
