// q, k and their products as strips of coloured bars, one bar a dimension.
import { el, fmt } from "./dom.js"
import { numberText } from "./attention_maps.js"

const SIGNS = { light: ["0,114,178", "213,94,0"], dark: ["86,180,233", "240,132,60"] }

// The largest size in a list of numbers: where its colours are full.
export function largest(values) {
  return values.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
}

// {node, paint(theme)}; rows: [{name, values, help}], all of one length.
export function strips(rows, s) {
  const readout = el("p", { class: "readout", "aria-live": "polite" }, s.strip_hint)
  const drawn = rows.map((row) => ({ ...row, canvas: el("canvas", { class: "strip" }), size: largest(row.values) }))
  const length = rows[0].values.length
  let at = -1
  const show = (index, theme) => {
    at = index
    readout.replaceChildren(index < 0 ? s.strip_hint : fmt(s.strip_value, { n: index,
      q: numberText(rows[0].values[index]), k: numberText(rows[1].values[index]), p: numberText(rows[2].values[index]) }))
    paint(theme)
  }
  let theme = "light"
  const paint = (now) => {
    theme = now ?? theme
    for (const row of drawn) paintStrip(row, at, theme)
  }
  const body = el("div", { class: "strips", tabindex: "0", role: "slider", "aria-label": s.strip_label, "aria-valuemin": 0,
    "aria-valuemax": length - 1, "aria-valuenow": 0 },
  drawn.map(({ name, help, canvas, size }) => el("div", { class: "strip-row" },
    el("span", { class: "strip-name" }, name, el("small", {}, help)), canvas,
    el("span", { class: "strip-scale" }, fmt(s.strip_scale, { max: numberText(size, 3) })))))
  const move = (index) => {
    show(index)
    body.setAttribute("aria-valuenow", Math.max(0, index))
    body.setAttribute("aria-valuetext", readout.textContent)
  }
  body.onpointermove = (event) => {
    const box = drawn[0].canvas.getBoundingClientRect()
    const index = Math.floor(((event.clientX - box.left) / Math.max(1, box.width)) * length)
    move(index >= 0 && index < length ? index : -1)
  }
  body.onpointerleave = () => move(-1)
  body.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    event.stopPropagation() // the page's own arrow keys step the run
    move(Math.max(0, Math.min(length - 1, at + step)))
  }
  return { node: el("div", {}, body, readout), paint }
}

function paintStrip({ canvas, values, size }, at, theme) {
  const ratio = window.devicePixelRatio || 1
  canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio))
  canvas.height = Math.max(1, Math.round(canvas.clientHeight * ratio))
  const pen = canvas.getContext("2d")
  values.forEach((value, index) => {
    const [from, to] = [index, index + 1].map((i) => Math.round((i * canvas.width) / values.length))
    pen.fillStyle = `rgba(${SIGNS[theme][value < 0 ? 0 : 1]},${size > 0 ? Math.abs(value) / size : 0})`
    pen.fillRect(from, 0, to - from, canvas.height)
    if (index !== at) return
    pen.strokeStyle = getComputedStyle(canvas).color
    pen.lineWidth = 2 * ratio
    pen.strokeRect(from, ratio, Math.max(2, to - from), canvas.height - 2 * ratio)
  })
}

export function valuesTable(rows, s) {
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, [s.dimension, ...rows.map((row) => row.name)].map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, rows[0].values.map((_, i) => el("tr", {}, el("td", { class: "num" }, i),
      rows.map((row) => el("td", { class: "num" }, numberText(row.values[i]))))))))
}
