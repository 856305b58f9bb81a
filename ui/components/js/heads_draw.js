// The canvas of all heads: small maps, numbers of layers and heads, outlines.
import { everyNth } from "./attention_maps.js"
import { passes } from "./attention_grid.js"

export const HEADS_MARGIN = 22
const FADED = 0.16

// view: {canvas, root, grid, items, data, small, limit, descending, here, placeOf, isOff}.
export function drawHeads(view) {
  const { canvas, grid, data } = view
  const ratio = window.devicePixelRatio || 1
  const [width, height] = [Math.max(1, grid.width + 1), Math.max(1, grid.height + 1)]
  canvas.width = Math.round(width * ratio)
  canvas.height = Math.round(height * ratio)
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` })
  const pen = canvas.getContext("2d")
  pen.scale(ratio, ratio)
  const style = getComputedStyle(view.root)
  const named = (name) => style.getPropertyValue(name)
  const colours = { text: style.color, faint: named("--faint"), line: named("--line"), mark: named("--attend"), panel: named("--panel") }
  pen.font = `12px ${style.fontFamily}`
  pen.imageSmoothingEnabled = grid.size * ratio < data.side
  for (const item of view.items) drawHead(view, pen, item, colours)
  if (!grid.flow) drawNumbers(view, pen, colours)
  outline(view, pen, data, colours.mark, 3)
  if (view.here) outline(view, pen, view.here, colours.text, 2)
}

function drawHead(view, pen, item, colours) {
  const { grid, data } = view
  const at = view.placeOf(item.layer, item.head)
  const side = grid.size - 2
  const picture = view.small.get(item.layer * data.heads + item.head)
  if (item.closed) return drawClosed(pen, at, side, colours.line)
  pen.globalAlpha = passes(item, view.limit, view.descending) ? 1 : FADED
  pen.fillStyle = colours.panel
  pen.fillRect(at.x, at.y, side, side)
  if (picture) pen.drawImage(picture, at.x, at.y, side, side)
  pen.strokeStyle = colours.line
  pen.lineWidth = 1
  pen.strokeRect(at.x + 0.5, at.y + 0.5, side - 1, side - 1)
  if (!picture) cross(pen, at, side, colours.line, false)
  if (view.isOff(item)) cross(pen, at, side, colours.text, true)
  pen.globalAlpha = 1
  if (!grid.flow) return
  pen.fillStyle = colours.faint
  pen.textAlign = "left"
  pen.fillText(`${item.layer + 1}·${item.head + 1}`, at.x + 1, at.y + grid.size + 11)
}

// No attention in this layer: an empty, dashed frame.
function drawClosed(pen, { x, y }, side, colour) {
  pen.strokeStyle = colour
  pen.lineWidth = 1
  pen.setLineDash([2, 3])
  pen.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1)
  pen.setLineDash([])
}

// One stroke: not read yet. Two: switched off.
function cross(pen, { x, y }, side, colour, both) {
  pen.strokeStyle = colour
  pen.lineWidth = both ? 1.5 : 1
  pen.beginPath()
  pen.moveTo(x + 2, y + side - 2)
  pen.lineTo(x + side - 2, y + 2)
  if (both) {
    pen.moveTo(x + 2, y + 2)
    pen.lineTo(x + side - 2, y + side - 2)
  }
  pen.stroke()
}

function drawNumbers({ grid, data }, pen, { faint, text }) {
  const mark = (number, { x, y }, along, strong) => {
    pen.fillStyle = strong ? text : faint
    pen.textAlign = along ? "center" : "right"
    const middle = grid.size / 2
    if (along) pen.fillText(String(number), x + middle - 1, HEADS_MARGIN - 6)
    else pen.fillText(String(number), HEADS_MARGIN - 5, y + middle + 4)
  }
  const marks = (count, here, room) => {
    const every = everyNth(count, count * grid.size, room)
    const regular = (n) => n === 0 || (n + 1) % every === 0
    const free = (n) => n === here || Math.abs(n - here) * grid.size >= room
    return Array.from({ length: count }, (_, n) => n).filter((n) => n === here || (regular(n) && free(n)))
  }
  const [layerRoom, headRoom] = grid.across ? [22, 14] : [14, 22]
  for (const layer of marks(data.layers, data.layer, layerRoom)) mark(layer + 1, grid.place(layer, 0), grid.across, layer === data.layer)
  for (const head of marks(data.heads, data.head, headRoom)) mark(head + 1, grid.place(0, head), !grid.across, head === data.head)
}

function outline(view, pen, { layer, head }, colour, thick) {
  const heads = head < 0 ? Array.from({ length: view.data.heads }, (_, n) => n) : [head]
  pen.strokeStyle = colour
  pen.lineWidth = thick
  for (const one of heads) {
    const at = view.placeOf(layer, one)
    if (at) pen.strokeRect(at.x, at.y, view.grid.size - 2, view.grid.size - 2)
  }
}
