// Two columns of tokens with arcs between them: which tokens stand there, and the arcs. Pure.

// The tokens of both columns: all of them, or around `query` and the keys with the most weight.
export function arcColumns(total, query, weights, most) {
  if (total <= most) {
    const all = Array.from({ length: total }, (_, i) => i)
    return { left: all, right: all }
  }
  const half = Math.floor(most / 2)
  const start = Math.max(0, Math.min(total - most, query - half))
  const left = Array.from({ length: most }, (_, i) => start + i)
  const best = [...weights].sort((a, b) => b.weight - a.weight || a.key - b.key).slice(0, most)
  return { left, right: best.map((item) => item.key).sort((a, b) => a - b) }
}

// One arc for each weight whose two ends are there; `swap`: the row belongs to the right column.
export function arcsFor(columns, query, weights, { pitch, width, thick, swap = false }) {
  const from = (swap ? columns.right : columns.left).indexOf(query)
  if (from < 0) return []
  return weights.flatMap(({ key, weight }) => {
    const to = (swap ? columns.left : columns.right).indexOf(key)
    if (to < 0 || !(weight > 0)) return []
    const [y0, y1] = (swap ? [to, from] : [from, to]).map((row) => (row + 0.5) * pitch)
    return [{ key, weight, thick: weight * thick, path: arcPath(y0, y1, width) }]
  })
}

export function arcPath(y0, y1, width) {
  const n = (value) => Number(value.toFixed(2))
  return `M0 ${n(y0)}C${n(width * 0.5)} ${n(y0)} ${n(width * 0.5)} ${n(y1)} ${n(width)} ${n(y1)}`
}

// Weight of the tokens that have no place in the right column.
export function unseen(columns, weights) {
  return weights.reduce((sum, { key, weight }) => (columns.right.includes(key) ? sum : sum + weight), 0)
}
