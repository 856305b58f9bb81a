// Beside the map: the two columns of tokens with the arcs of one row, and the row as a table.
import { el, fmt, svg } from "./dom.js"
import { arcColumns, arcsFor, unseen } from "./attention_arcs.js"
import { weightText } from "./attention_maps.js"

export const MOST = 26
const PITCH = 24

export function tokenName(tokens, position) {
  return el("span", { class: "tok" }, el("small", {}, position), el("bdi", {}, tokens[position].label))
}

// One row's arcs. ui: {hoverRow(row), hoverColumn(key), pin(row)}.
export function arcsNode(data, state, weights, ui) {
  const s = data.strings
  const swap = state.column !== null
  const query = swap ? state.column : state.query
  const columns = arcColumns(data.tokens.length, state.query, weights, MOST)
  const rows = Math.max(columns.left.length, columns.right.length)
  const height = rows * PITCH
  const arcs = arcsFor(columns, query, weights, { pitch: PITCH, width: 100, thick: 15, swap })
  const picture = svg("svg", { class: "arcs", viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none", "aria-hidden": "true",
    style: { height: `${height}px` } },
  arcs.map(({ key, path, thick, weight }) => svg("path", { d: path, "stroke-width": Math.max(0.6, thick), "data-key": key,
    opacity: 0.35 + 0.65 * weight, "vector-effect": "non-scaling-stroke" })))
  const shown = new Map(weights.map(({ key, weight }) => [key, weight]))
  const left = columns.left.map((row) => tokenButton(data, row, {
    class: [row === query && !swap && "on", row === data.at && data.pinned && "pinned"].filter(Boolean).join(" "),
    value: swap && shown.has(row) ? weightText(shown.get(row)) : null, "data-query": row,
    "aria-pressed": String(row === data.at && data.pinned), title: s.pin,
    onpointerenter: () => ui.hoverRow(row), onfocus: () => ui.hoverRow(row), onclick: () => ui.pin(row),
  }))
  const right = columns.right.map((key) => tokenButton(data, key, {
    class: [key === query && swap && "on", !swap && !shown.has(key) && "dim"].filter(Boolean).join(" "),
    value: !swap && shown.has(key) ? weightText(shown.get(key)) : null, "data-column": key, title: s.open_cell,
    onpointerenter: () => ui.hoverColumn(key), onfocus: () => ui.hoverColumn(key), onclick: () => ui.cell(key),
  }))
  const rest = swap ? 0 : unseen(columns, weights)
  return el("div", { class: "arcs-box", onpointerleave: () => ui.leave() },
    el("div", { class: "arcs-head" }, el("span", {}, s.query_axis), el("span", {}, s.key_axis)),
    el("div", { class: "arcs-body" }, el("ol", {}, left), picture, el("ol", {}, right)),
    rest > 0 ? el("p", { class: "faint" }, fmt(s.arcs_rest, { w: weightText(rest) })) : null)
}

function tokenButton(data, position, { value, ...attributes }) {
  const { label, source } = data.tokens[position]
  return el("li", {}, el("button", { type: "button", ...attributes, class: `token ${source} ${attributes.class}` },
    el("small", {}, position), el("bdi", {}, label), value === null ? null : el("span", { class: "weight" }, value)))
}

// The row in view as a table, strongest first: what the picture says, in numbers.
export function rowTable(data, query, weights, ui) {
  const s = data.strings
  const sorted = [...weights].sort((a, b) => b.weight - a.weight)
  const row = ({ key, weight }) => el("tr", {}, el("td", { class: "num" }, key),
    el("td", {}, el("bdi", {}, data.tokens[key].label)), el("td", { class: "num" }, weightText(weight)),
    el("td", {}, data.head < 0 ? "" : el("button", { type: "button", class: "quiet", onclick: () => ui.cell(key) }, s.how)))
  return el("div", { class: "scroll" }, el("table", {},
    el("caption", {}, fmt(s.row_of, { n: query, token: data.tokens[query].label })),
    el("thead", {}, el("tr", {}, [s.index, s.key_axis, s.weight, ""].map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, sorted.map(row))))
}
