// A heat map with token labels on both axes and a crosshair: the map of a head, or one row of
// every layer. y: rows (who attends, or the layer), x: columns (the key), whatever the size.
import { el, svg } from "./dom.js"
import { attendTable, clipLabel, everyNth, unitOf } from "./attention_maps.js"

const SLANT = 52
const LETTER = 8 // pixels, at most, of a letter of a name
const LABELS = { left: 118, top: 84, narrow: 74, right: 44 }

// {node, draw(model)}; model: {rows, columns, at(row, column) → weight, rowLabel(row),
// columnLabel(column), range, log, theme, skip (columns left out), own (column = row is the end)}.
export function heatMap({ hover, pick, key }) {
  const canvas = el("canvas", { "aria-hidden": "true" })
  const over = svg("svg", { class: "over", "aria-hidden": "true" })
  const node = el("div", { class: "plot", tabindex: "0", role: "application" }, canvas, over)
  const plot = { node, canvas, over, model: null, box: null, here: null }
  const under = (event) => cellUnder(plot, event)
  node.onpointermove = (event) => hover(under(event))
  node.onpointerleave = () => hover(null)
  node.onclick = (event) => {
    const cell = under(event)
    if (cell) pick(cell)
  }
  node.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || !key(event.key)) return
    event.preventDefault()
    event.stopPropagation() // the page's own keys step the run
  }
  plot.draw = (model) => drawMap(plot, model)
  plot.show = (here, pinned) => crosshair(plot, here, pinned)
  return plot
}

// Where everything lies. A map of a head has square cells; one of layers may have wide ones.
export function mapBox(width, { rows, columns, tall, square }) {
  const left = width < 520 ? LABELS.narrow : LABELS.left
  const room = Math.max(80, width - left - LABELS.right)
  const side = Math.min(room / columns, tall / rows, 60)
  const cell = square ? { width: side, height: side } : { width: Math.min(room / columns, 72), height: Math.min(tall / rows, 20) }
  return { left, top: LABELS.top, cell, width: left + columns * cell.width, height: LABELS.top + rows * cell.height }
}

// The cell under a point given relative to the plot; null outside.
export function cellAt(box, rows, columns, x, y) {
  const [column, row] = [Math.floor((x - box.left) / box.cell.width), Math.floor((y - box.top) / box.cell.height)]
  return row >= 0 && row < rows && column >= 0 && column < columns ? { row, column } : null
}

function cellUnder(plot, event) {
  const box = plot.canvas.getBoundingClientRect()
  return cellAt(plot.box, plot.model.rows, plot.model.columns, event.clientX - box.left, event.clientY - box.top)
}

// RGBA pixels, one for `pool` × `pool` cells, showing the largest weight of them: transparent
// behind the mask, for left-out columns and unknown rows.
export function mapPixels(model, table, pool = 1) {
  const [high, wide] = [model.rows, model.columns].map((count) => Math.ceil(count / pool))
  const best = new Float32Array(high * wide).fill(-1)
  for (let row = 0; row < model.rows; row++) {
    for (let column = model.skip; column < model.columns; column++) {
      if (model.hidden(row, column)) continue
      const place = Math.floor(row / pool) * wide + Math.floor(column / pool)
      const weight = model.at(row, column)
      if (weight > best[place]) best[place] = weight
    }
  }
  const out = new Uint8ClampedArray(4 * high * wide)
  best.forEach((weight, place) => {
    if (weight < 0) return
    const tone = 3 * Math.round(255 * unitOf(weight, model.range, model.log))
    out.set([table[tone], table[tone + 1], table[tone + 2], 255], 4 * place)
  })
  return out
}

// Cells that share a pixel, when they are smaller than one.
export function poolOf(cell, ratio) {
  return Math.max(1, Math.ceil(1 / (Math.min(cell.width, cell.height) * ratio)))
}

function drawMap(plot, model) {
  plot.model = model
  const width = plot.node.clientWidth || 600
  const box = mapBox(width, model)
  plot.box = box
  Object.assign(plot.node.dataset, { left: box.left, top: box.top, wide: box.cell.width, high: box.cell.height })
  const ratio = window.devicePixelRatio || 1
  const { canvas, over } = plot
  canvas.width = Math.round(box.width * ratio)
  canvas.height = Math.round(box.height * ratio)
  Object.assign(canvas.style, { width: `${box.width}px`, height: `${box.height}px` })
  over.setAttribute("width", width)
  over.setAttribute("height", box.height)
  plot.pool = poolOf(box.cell, ratio)
  const [wide, high] = [model.columns, model.rows].map((count) => Math.ceil(count / plot.pool))
  const small = el("canvas", { width: wide, height: high })
  const pixels = mapPixels(model, attendTable(model.theme), plot.pool)
  small.getContext("2d").putImageData(new ImageData(pixels, wide, high), 0, 0)
  const pen = canvas.getContext("2d")
  pen.scale(ratio, ratio)
  const style = getComputedStyle(plot.node)
  pen.fillStyle = style.getPropertyValue("--masked")
  pen.fillRect(box.left, box.top, box.width - box.left, box.height - box.top)
  pen.imageSmoothingEnabled = false
  pen.drawImage(small, box.left, box.top, wide * plot.pool * box.cell.width, high * plot.pool * box.cell.height)
  if (Math.min(box.cell.width, box.cell.height) >= 12) gridLines(pen, box, model, style)
  over.replaceChildren(axisLabels(plot, model, box), svg("g", { class: "cross" }))
}

function gridLines(pen, box, model, style) {
  pen.strokeStyle = style.getPropertyValue("--st-background-color")
  pen.lineWidth = 1
  pen.beginPath()
  for (let row = 0; row <= model.rows; row++) {
    pen.moveTo(box.left, box.top + row * box.cell.height)
    pen.lineTo(box.width, box.top + row * box.cell.height)
  }
  for (let column = 0; column <= model.columns; column++) {
    pen.moveTo(box.left + column * box.cell.width, box.top)
    pen.lineTo(box.left + column * box.cell.width, box.height)
  }
  pen.stroke()
}

// The positions that are named on an axis: every so many, and always the last one. `size`: pixels
// of a cell; `room`: pixels that a name needs.
export function named(count, size, room) {
  const every = everyNth(count, count * size, room)
  const last = count - 1
  const out = []
  for (let n = 0; n < last; n += every) if ((last - n) * size >= room) out.push(n)
  return [...out, last]
}

// Letters of a slanted name that starts at `x` and must end at `width`.
export function lettersFor(x, width, most) {
  return Math.max(0, Math.min(most, Math.floor((width - x) / (LETTER * Math.cos((SLANT * Math.PI) / 180)))))
}

function axisLabels(plot, model, box) {
  const letters = box.left < 100 ? 6 : 12
  const width = plot.node.clientWidth || box.width
  const out = []
  for (const row of named(model.rows, box.cell.height, 15)) {
    const y = Math.min(box.top + (row + 0.5) * box.cell.height + 4.5, box.height - 3)
    out.push(svg("text", { class: "label row", x: box.left - 6, y, "data-row": row }, nameOf(model.rowLabel(row), letters)))
  }
  for (const column of named(model.columns, box.cell.width, 19)) {
    const x = box.left + (column + 0.5) * box.cell.width + 3
    const turn = `translate(${x} ${box.top - 6}) rotate(-${SLANT})`
    const { index, text } = model.columnLabel(column)
    const room = lettersFor(x, width, 15) - `${index} `.length
    out.push(svg("text", { class: "label column", transform: turn, "data-column": column },
      nameOf({ index, text: room > 1 ? text : "" }, Math.min(11, room))))
  }
  return svg("g", {}, out)
}

// "3 ␣France": the index always, then as much of the token as fits.
function nameOf({ index, text }, letters) {
  return text ? [svg("tspan", { class: "index" }, `${index} `), svg("tspan", { class: "name" }, clipLabel(text, letters))] : index
}

// The row and column of a cell (or only a row), and the pinned row.
function crosshair(plot, here, pinned) {
  const { box, model, over } = plot
  if (!box) return
  const band = (kind, x, y, width, height) => svg("rect", { class: kind, x, y, width, height })
  const [wide, high] = [box.width - box.left, box.height - box.top]
  const out = []
  if (pinned !== null && pinned !== undefined) {
    out.push(band("pinned", box.left, box.top + pinned * box.cell.height, wide, Math.max(2, box.cell.height)))
  }
  if (here) {
    const [x, y] = [box.left + here.column * box.cell.width, box.top + here.row * box.cell.height]
    out.push(band("line", box.left, y, wide, Math.max(1, box.cell.height)))
    if (here.column >= 0) {
      out.push(band("line", x, box.top, Math.max(1, box.cell.width), high),
        band("spot", x, y, Math.max(3, box.cell.width), Math.max(3, box.cell.height)))
    }
  }
  over.querySelector(".cross")?.replaceChildren(...out)
  plot.here = here
  for (const label of over.querySelectorAll(".label")) {
    const mine = here && (label.dataset.row === String(here.row) || label.dataset.column === String(here.column))
    label.classList.toggle("on", Boolean(mine))
  }
}

// Where an arrow key leads; null: not a key of ours. Behind the mask there is nothing.
export function stepCell(name, here, model) {
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }
  if (!(name in moves)) return null
  const [down, across] = moves[name]
  const row = Math.max(model.least ?? 0, Math.min(model.rows - 1, here.row + down))
  const end = model.own ? row : model.columns - 1
  return { row, column: Math.max(model.skip, Math.min(end, here.column + across)) }
}
