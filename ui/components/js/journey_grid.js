// Where the lanes of tokens and the columns of layers lie; no DOM, so that node can test it.
import { laneHeight, layerAt } from "./journey_layout.js"

export const GRID = { axis: 22, room: 325, denseRoom: 204, shortRoom: 168, lens: 36, lensTitle: 24, run: 120 }

// size: wide, middle or narrow (the component); short: a low window; width: of the drawing.
export function laneGrid({ size, dense, short, width, layers, rows, hidden, lens }) {
  const wide = size !== "narrow"
  const pad = { left: dense || !wide ? 14 : 46, right: wide ? 58 : 44 }
  const slots = rows + (hidden ? 1 : 0) + 1 // the last one belongs to the token that joins
  const lane = laneHeight(slots, !wide ? 30 * slots : short ? GRID.shortRoom : dense ? GRID.denseRoom : GRID.room)
  const bottom = GRID.axis + (wide ? slots : slots - 1) * lane
  const pitch = Math.max(1, (width - pad.left - pad.right) / layers)
  const slotOf = (row) => (hidden && row > 0 ? row + 1 : row)
  const grid = {
    wide,
    width,
    pitch,
    lane,
    bottom,
    layers,
    rows,
    hidden,
    cell: Math.round(lane * 0.7),
    start: pad.left,
    end: pad.left + layers * pitch,
    // How far lines reach into the neighbouring stages.
    before: wide ? -17 : 0,
    after: size === "wide" ? 27 : 0,
    lanesEnd: GRID.axis + (slots - 1) * lane,
    height: bottom + (lens ? GRID.lensTitle + GRID.lens + 4 : 0),
    left: (layer) => pad.left + layer * pitch,
    middle: (slot) => GRID.axis + (slot + 0.5) * lane,
    rowMiddle: (row) => grid.middle(slotOf(row)),
    // The cell under a point; null and -1 outside.
    at(x, y) {
      const slot = Math.floor((y - GRID.axis) / lane)
      const row = hidden && slot > 1 ? slot - 1 : slot
      const inside = row >= 0 && row < rows && !(hidden && slot === 1)
      return { layer: layerAt(x, pad.left, pitch, layers), row: inside ? row : -1 }
    },
  }
  return grid
}

// The weights of one reader, from top to bottom: its own and earlier lanes, the gap included.
// weights [layer, row, column]; with a gap the last column is the sum over the hidden tokens.
// Empty where the layer has no attention (NaN).
export function reading(weights, grid, layer, reader) {
  const columns = grid.rows + (grid.hidden ? 1 : 0)
  const first = (layer * grid.rows + reader) * columns
  if (Number.isNaN(weights[first])) return []
  const sources = []
  for (let row = 0; row <= reader; row++) {
    sources.push({ key: row, y: grid.rowMiddle(row), weight: weights[first + row] })
    if (row === 0 && grid.hidden && reader > 0) {
      sources.push({ key: "gap", y: grid.middle(1), weight: weights[first + grid.rows] })
    }
  }
  return sources
}
