// Elements, tables and numbers. All texts become text nodes, so that none is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Return a new HTML element. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Return a new SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * Return a table.
 *
 * A column has `title`, `cell` (a function from a row to a text or element), and `kind`: "n" for numbers, "wide" for
 * texts that may be broken anywhere.
 */
export function table(columns, rows) {
  const head = columns.map((column) => el("th", { scope: "col", class: column.kind }, column.title));
  const body = rows.map((row) =>
    el("tr", {}, columns.map((column, index) => {
      const attributes = { class: column.kind };
      if (index === 0) return el("th", { ...attributes, scope: "row" }, column.cell(row));
      return el("td", attributes, column.cell(row));
    })));
  return el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body));
}

/** Return the text of a number; a dash for null. */
export function number(value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return value.toLocaleString("en", { maximumFractionDigits: value >= 100 ? 0 : value >= 10 ? 1 : 2 });
}

/** Return the text of a time in seconds; a dash for null. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${number(seconds * 1000)} ms`;
  if (seconds < 120) return `${number(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

/** Return the text of a number of bytes; a dash for null. */
export function bytes(value) {
  return value === null || value === undefined ? "–" : `${number(value / 1e6)} MB`;
}

/** Return a text with a class that colors it. */
export function mark(text, kind) {
  return el("span", { class: kind }, text);
}
