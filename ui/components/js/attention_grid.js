// Where the small maps lie, in which order, and where the arrow keys lead. Pure.

// Whether a layer of a hybrid has no attention at all.
export function isClosed(data, layer) {
  return data.closed.includes(layer)
}

// All heads of the model: in the order of the model, or by a statistic.
// statistics: name → [layer][head] (null where unknown); returns [{layer, head, value}].
export function listHeads(data, name) {
  const out = []
  for (let layer = 0; layer < data.layers; layer++) {
    for (let head = 0; head < data.heads; head++) {
      const row = name ? data.statistics[name][layer] : null
      const known = data.known.includes(layer)
      out.push({ layer, head, value: row ? row[head] : null, known, closed: isClosed(data, layer) })
    }
  }
  return out
}

export function sortHeads(list, descending) {
  const known = list.filter((item) => item.value !== null)
  return known.sort((a, b) => (descending ? b.value - a.value : a.value - b.value))
}

// [smallest, largest] value of a statistic; null when none is known.
export function spread(list) {
  const values = list.map((item) => item.value).filter((value) => value !== null)
  return values.length ? [Math.min(...values), Math.max(...values)] : null
}

// Which heads pass a filter "at least" (or "at most") `limit`.
export function passes(item, limit, descending) {
  if (item.closed) return false
  if (limit === null) return true
  if (item.value === null) return false
  return descending ? item.value >= limit : item.value <= limit
}

// The grid of the model: layers from left to right where they have room, else from top to bottom.
export function modelGrid(data, width, margin) {
  const group = data.heads / Math.max(1, data.kv_heads)
  const across = (width - margin) / data.layers >= 20
  const [columns, rows] = across ? [data.layers, data.heads] : [data.heads, data.layers]
  const gaps = across ? 0 : data.kv_heads - 1
  const size = Math.max(8, Math.min(64, Math.floor((width - margin - 4 * gaps) / columns)))
  const extra = (head) => (group > 1 ? 4 * Math.floor(head / group) : 0)
  const place = (layer, head) =>
    across
      ? { x: margin + layer * size, y: margin + head * size + extra(head) }
      : { x: margin + head * size + extra(head), y: margin + layer * size }
  const end = place(data.layers - 1, data.heads - 1)
  return { across, columns, rows, size, place, width: end.x + size + 1, height: end.y + size + 1, group }
}

// Heads in a row of their own order, one line after the other.
export function flowGrid(count, width) {
  const columns = Math.max(1, Math.floor(width / Math.max(34, Math.min(56, width / 8))))
  const size = Math.floor(width / columns)
  const caption = 15
  const place = (index) => ({ x: (index % columns) * size, y: Math.floor(index / columns) * (size + caption) })
  const rows = Math.ceil(count / columns)
  return { columns, rows, size, caption, place, width: columns * size, height: rows * (size + caption) }
}

// The head under a point of the model's grid; null in a gap or outside.
export function headUnder(grid, data, x, y) {
  for (let layer = 0; layer < data.layers; layer++) {
    for (let head = 0; head < data.heads; head++) {
      const at = grid.place(layer, head)
      if (x >= at.x && x < at.x + grid.size && y >= at.y && y < at.y + grid.size) return { layer, head }
    }
  }
  return null
}

// Where an arrow key leads from (layer, head) in the model's grid; null: not a key of ours.
export function stepHead(key, here, data, across) {
  const moves = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }
  if (key === "Home") return { layer: 0, head: here.head }
  if (key === "End") return { layer: data.layers - 1, head: here.head }
  if (!(key in moves)) return null
  const [dx, dy] = moves[key]
  const [layers, heads] = across ? [dx, dy] : [dy, dx]
  const within = (value, count) => Math.max(0, Math.min(count - 1, value))
  return { layer: within(here.layer + layers, data.layers), head: within(here.head + heads, data.heads) }
}

// Where an arrow key leads in a flow of `count` heads.
export function stepFlow(key, index, count, columns) {
  const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, Home: -count, End: count }
  if (!(key in moves)) return null
  return Math.max(0, Math.min(count - 1, index + moves[key]))
}

// The small picture of one head within data.pictures: [known layer, head, row, column].
export function pictureOf(data, pictures, layer, head) {
  const place = data.known.indexOf(layer)
  if (place < 0) return null
  const bytes = data.side * data.side
  const start = (place * data.heads + head) * bytes
  return pictures.subarray(start, start + bytes)
}

// RGBA pixels of a small picture; what the mask hides (column > row) stays transparent.
export function paintPicture(picture, side, table) {
  const out = new Uint8ClampedArray(4 * side * side)
  for (let row = 0; row < side; row++) {
    for (let column = 0; column <= row; column++) {
      const at = row * side + column
      out.set([table[3 * picture[at]], table[3 * picture[at] + 1], table[3 * picture[at] + 2], 255], 4 * at)
    }
  }
  return out
}
