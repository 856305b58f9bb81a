// Where the cells of the layer × position map lie, and what a cell says; no DOM, so that node
// can test it. Rows are layers, the first on top; columns are positions.

export const MAP = { head: 30, foot: 30, narrow: 62, wide: 108 }

// width: pixels for the columns. The map may become wider than that and is scrolled then.
export function mapGrid({ width, columns, layers }) {
  const column = Math.max(MAP.narrow, Math.min(MAP.wide, Math.floor(width / Math.max(1, columns))))
  const row = Math.max(18, Math.min(34, Math.floor(660 / Math.max(1, layers))))
  return {
    column,
    row,
    columns,
    layers,
    width: column * columns,
    height: MAP.head + row * layers + MAP.foot,
    left: (index) => index * column,
    top: (layer) => MAP.head + layer * row,
    // The cell under a point: layer null in the head and foot; null outside.
    at(x, y) {
      const index = Math.floor(x / column)
      if (index < 0 || index >= columns || y < 0 || y >= MAP.head + row * layers + MAP.foot) return null
      const layer = Math.floor((y - MAP.head) / row)
      return { column: index, layer: layer >= 0 && layer < layers ? layer : null }
    },
  }
}

// Where a key moves the cursor {layer, column}; null: not a key of ours.
export function movedCell(key, cell, grid) {
  const steps = {
    ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
    PageUp: [-5, 0], PageDown: [5, 0], Home: [0, -grid.columns], End: [0, grid.columns],
  }
  if (!(key in steps)) return null
  const clamp = (value, count) => Math.max(0, Math.min(count - 1, value))
  return {
    layer: clamp(cell.layer + steps[key][0], grid.layers),
    column: clamp(cell.column + steps[key][1], grid.columns),
  }
}

// How strongly a cell is coloured, 0 … 1; null: nothing is known.
export function strength(data, layer, column) {
  if (data.values) {
    const value = data.values[layer][column]
    return value === null ? null : onScale(value, data.scale)
  }
  const shares = data.shares[layer][column]
  return shares ? shares[0] : null
}

export function onScale(value, scale) {
  const clamp = (x) => Math.max(0, Math.min(1, x))
  if (scale.kind === "cosine") return clamp(value)
  // The square root spreads the small shares; a change as large as the stream itself is full.
  if (scale.kind === "share") return Math.sqrt(clamp(value))
  if (!(value > 0) || !(scale.high > scale.low)) return 0
  return clamp(Math.log(value / scale.low) / Math.log(scale.high / scale.low))
}

// A value of the map in few letters: 12.3k, 0.42, 28 %.
export function valueText(value, kind) {
  if (value === null) return "–"
  if (kind === "share") return value >= 10 ? `× ${value.toFixed(0)}` : `${(100 * value).toFixed(value < 0.1 ? 1 : 0)} %`
  if (kind === "cosine") return value.toFixed(2).replace(/^-0\.00$/, "0.00").replace("-", "−")
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)}M`
  if (value >= 1e4) return `${(value / 1e3).toFixed(1)}k`
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3)
}

// What stands in a cell.
export function cellText(data, layer, column) {
  if (data.values) return valueText(data.values[layer][column], data.scale.kind)
  const best = data.best[layer][column]
  return best ? data.labels[best[0]] : "·"
}

// Whether the lens is shown and a layer's favourite is the token that follows in the text.
export function agrees(data, layer, column) {
  if (data.values || !data.best[layer][column]) return false
  return data.columns[column].ways.some((way) => way.next && way.rank[layer] === 1)
}

// `text` cut so that `measure` finds it no wider than `room`.
export function fitted(text, room, measure) {
  if (measure(text) <= room) return text
  const letters = [...text]
  let low = 0
  let high = letters.length
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (measure(`${letters.slice(0, middle).join("")}…`) <= room) low = middle
    else high = middle - 1
  }
  return low ? `${letters.slice(0, low).join("")}…` : "…"
}
