// What is said of one cell of the map, beside it.
import { el, fmt, percent } from "./dom.js"
import { valueText } from "./lens_layout.js"

const token = (label, more = "") => el("bdi", { class: `tok ${more}`.trim(), title: label }, label)

// A message whose {token} is drawn as a token.
function withToken(text, label, values) {
  return text.split("{token}").flatMap((part, i) => [i ? token(label) : null, fmt(part, values)])
}

export function panelNodes(data, { layer, column }) {
  const s = data.strings
  const own = data.columns[column]
  return [
    el("h3", {}, fmt(s.cell_layer, { n: layer + 1, of: data.layers })),
    el("p", { class: "where" }, withToken(s.cell_position, own.label, { n: own.position })),
    data.values ? valueNode(data, layer, column) : null,
    bestNode(data, layer, column),
    wayNodes(data, layer, column),
  ]
}

function valueNode(data, layer, column) {
  const s = data.strings
  const text = valueText(data.values[layer][column], data.scale.kind)
  return el("p", { class: "value" }, el("strong", {}, text), ` ${s[`cell_${data.cell}_value`]}`)
}

function bestNode(data, layer, column) {
  const best = data.best[layer][column]
  const s = data.strings
  if (!best) return el("p", { class: "dim" }, s.cell_unknown)
  const shares = data.shares[layer][column]
  // By rank, because two tokens can have the same label.
  const next = data.columns[column].ways.find((way) => way.next)?.rank[layer]
  return el("ol", { class: "best", "aria-label": s.cell_best }, best.map((index, i) =>
    el("li", { class: i + 1 === next ? "next" : null },
      token(data.labels[index]),
      el("i", { class: "bar", style: { width: `${Math.max(0.5, 100 * shares[i])}%` } }),
      el("span", { class: "num" }, percent(shares[i])))))
}

function wayNodes(data, layer, column) {
  const s = data.strings
  return data.columns[column].ways.map((way) => {
    const name = way.next ? (data.columns[column].chosen ? s.cell_chosen : s.cell_next) : s.cell_favourite
    return el("p", { class: way.next ? "way next" : "way" },
      withToken(name, way.label, {}), " ",
      el("span", { class: "num" }, fmt(s.cell_rank, { p: percent(way.p[layer]), rank: thousand(way.rank[layer]) })))
  })
}

const thousand = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",")

// The same in one line, for screen readers.
export function spoken(data, { layer, column }) {
  const s = data.strings
  const own = data.columns[column]
  const where = fmt(s.spoken, { layer: layer + 1, n: own.position, token: own.label })
  if (data.values) return `${where} ${valueText(data.values[layer][column], data.scale.kind)} ${s[`cell_${data.cell}_value`]}`
  const best = data.best[layer][column]
  if (!best) return `${where} ${s.cell_unknown}`
  const shares = data.shares[layer][column]
  return `${where} ${best.slice(0, 3).map((index, i) => `${data.labels[index]} ${percent(shares[i])}`).join(", ")}`
}
