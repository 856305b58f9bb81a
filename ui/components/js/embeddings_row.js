// The look-up: the tokens that were read, and the row of the one in view with all its numbers.
import { el, fmt } from "./dom.js"
import { heatAt, heatColumns, heatFloats, heatFrame, heatGrid, heatNumber, heatPaint } from "./heat.js"

export function rowChips(data, look) {
  const s = data.strings
  return el("div", { class: "tokens", role: "group", "aria-label": s.tokens },
    data.tokens.map((token) => el("button", {
      type: "button",
      class: `token ${token.source}${token.special ? " control" : ""}`,
      "aria-pressed": String(token.position === data.at),
      title: fmt(s.token_help, { token: token.label, id: token.id, position: token.position }),
      onclick: () => look(token.position),
    }, el("span", { class: "place" }, token.position), " ", el("bdi", {}, token.label))))
}

// token → id → row, in words and signs.
export function rowRoad(data) {
  const s = data.strings
  const token = data.tokens[data.at]
  const arrow = () => el("span", { class: "arrow", "aria-hidden": "true" }, "→")
  return el("p", { class: "road" },
    el("span", { class: "big" }, el("bdi", {}, token.label)), arrow(),
    el("span", {}, fmt(s.id, { id: token.id })), arrow(),
    el("span", {}, fmt(data.stored ? s.row_of : s.entering_of,
      { id: token.id.toLocaleString("en"), rows: data.vocabulary.toLocaleString("en"), n: data.width.toLocaleString("en") })))
}

// {node, paint(theme)}: the strip, the number under the pointer, and a field for any number.
export function rowStrip(data) {
  const s = data.strings
  const values = heatFloats(data.row)
  const canvas = el("canvas", { role: "img", "aria-label": fmt(s.strip_label, { n: data.width }) })
  const mark = el("span", { class: "mark", hidden: true })
  const starts = el("div", { class: "starts", "aria-hidden": "true" })
  const field = el("input", { type: "number", min: 0, max: data.width - 1, step: 1, value: 0, "aria-label": s.number_label })
  const value = el("output", {}, heatNumber(values[0]))
  const box = el("div", { class: "cells" }, canvas, mark)
  let grid = null

  function show(index) {
    if (!(index >= 0 && index < values.length)) return
    value.textContent = heatNumber(values[index])
    if (grid) heatFrame(mark, grid, index)
  }

  canvas.onpointermove = (event) => {
    const index = heatAt(grid, event.offsetX, event.offsetY)
    if (index < 0) return
    field.value = index
    show(index)
  }
  canvas.onpointerdown = canvas.onpointermove
  field.oninput = () => show(field.valueAsNumber)

  function paint(theme) {
    grid = heatGrid(values.length, Math.max(60, box.clientWidth))
    heatPaint(canvas, values, grid, data.saturation, theme)
    starts.replaceChildren(...Array.from({ length: grid.lines }, (_, line) =>
      el("span", { style: { height: `${grid.high}px` } }, line * grid.columns)))
    show(field.valueAsNumber)
  }

  const node = el("div", {},
    el("div", { class: "strip" }, starts, box),
    el("div", { class: "reading" },
      el("label", {}, s.number, " ", el("span", { class: "code" }, "[", field, "]")), " = ", value,
      el("span", { class: "scale" },
        heatNumber(-data.saturation, 2), el("span", { class: "ramp", "aria-hidden": "true" }), `+${heatNumber(data.saturation, 2)}`)),
    el("p", { class: "dim" }, fmt(s.facts, {
      length: data.length.toFixed(3), low: heatNumber(data.lowest, 3), high: heatNumber(data.highest, 3) })),
    rowAll(values, s))
  return { node, paint }
}

function rowAll(values, s) {
  const list = el("p", { class: "all" })
  const details = el("details", {}, el("summary", {}, fmt(s.all_numbers, { n: values.length })), list)
  details.ontoggle = () => {
    if (details.open && !list.textContent) list.textContent = Array.from(values, (v) => heatNumber(v, 5)).join("  ")
  }
  return details
}

export function rowNeighbours(data) {
  const s = data.strings
  if (!data.neighbours) return el("p", { class: "dim" }, data.without)
  const best = data.neighbours[0]?.cosine ?? 1
  return el("table", {},
    el("thead", {}, el("tr", {}, el("th", { class: "num" }, "#"), el("th", {}, s.token), el("th", { class: "num" }, s.id_short),
      el("th", {}, s.cosine))),
    el("tbody", {}, data.neighbours.map((near, i) => el("tr", {},
      el("td", { class: "num dim" }, i + 1),
      el("td", { class: "label", title: near.label }, el("bdi", {}, near.label)),
      el("td", { class: "num dim" }, near.id),
      el("td", { class: "bar-cell" },
        el("span", { class: "value" }, heatNumber(near.cosine, 3)),
        el("span", { class: "bar", style: { width: `calc(${Math.max(0, Math.min(1, near.cosine / Math.max(best, 1e-6))) * 100}% * var(--longest, 0.55))` } }))))))
}
