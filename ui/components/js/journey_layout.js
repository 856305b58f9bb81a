// Pure geometry and small sums of the journey; no DOM, so that node can test them.

// Base64 of little-endian float32, as numbers.
export function floats(text) {
  return new Float32Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer)
}

// The height of one lane, so that `rows` of them fill `room` pixels.
export function laneHeight(rows, room, least = 25, most = 48) {
  return Math.max(least, Math.min(most, Math.floor(room / Math.max(1, rows))))
}

// Which drawn value each bar of a strip shows: every k-th, bars at least `thin` pixels wide.
export function striding(count, pixels, thin = 2) {
  const bars = Math.max(1, Math.floor(pixels / thin))
  return Math.max(1, Math.ceil(count / bars))
}

// How strongly a value is coloured: sign and share of the value at which colours saturate.
export function tone(value, saturation) {
  if (!(saturation > 0)) return 0
  return Math.max(-1, Math.min(1, value / saturation))
}

// Opacity of a cell. The square root spreads the small changes; 100 % and more is full.
export function tint(change) {
  return 0.05 + 0.95 * Math.sqrt(Math.max(0, Math.min(1, change)))
}

// The layer under x, or null outside the cells.
export function layerAt(x, left, pitch, layers) {
  const layer = Math.floor((x - left) / pitch)
  return layer >= 0 && layer < layers ? layer : null
}

// Where a key moves the selection within 0 … count - 1; null: not a key of ours.
export function moved(key, layer, count) {
  const steps = { ArrowRight: 1, ArrowLeft: -1, PageUp: 5, PageDown: -5 }
  if (key === "Home") return 0
  if (key === "End") return count - 1
  if (!(key in steps)) return null
  return Math.max(0, Math.min(count - 1, layer + steps[key]))
}

// Attention as ribbons: each is as thick as its weight's share of one cell, and they arrive
// side by side, so that together they fill the reader's cell exactly.
// sources: [{key, y, weight}], y the middle of the lane; target: {y, height}; x0 → x1.
export function ribbons(sources, target, x0, x1) {
  let edge = target.y - target.height / 2
  return sources.map((source) => {
    const thick = source.weight * target.height
    const end = edge + thick / 2
    edge += thick
    return { ...source, thick, end, path: ribbon(x0, source.y, x1, end, thick) }
  })
}

// A band of constant vertical thickness that leaves and arrives horizontally.
export function ribbon(x0, y0, x1, y1, thick) {
  const [bend0, bend1, half] = [x0 + 0.62 * (x1 - x0), x0 + 0.38 * (x1 - x0), thick / 2]
  const n = (value) => Number(value.toFixed(2))
  return (
    `M${n(x0)} ${n(y0 - half)}C${n(bend0)} ${n(y0 - half)} ${n(bend1)} ${n(y1 - half)} ${n(x1)} ${n(y1 - half)}` +
    `L${n(x1)} ${n(y1 + half)}C${n(bend1)} ${n(y1 + half)} ${n(bend0)} ${n(y0 + half)} ${n(x0)} ${n(y0 + half)}Z`
  )
}

// Up to `count` layers to quote, closer together towards the last one, which is included.
export function quoted(layers, count) {
  const picked = new Set()
  for (let i = 1; i <= count; i++) {
    picked.add(Math.max(1, Math.round(layers * (1 - (1 - i / count) ** 1.6))) - 1)
  }
  return layers ? [...picked] : []
}

// The layers whose number is written on the axis: the first, the last, and round steps.
export function ticks(layers, width) {
  const step = [1, 2, 5, 10, 20, 50].find((s) => (width / layers) * s >= 48) ?? 100
  const inner = []
  for (let n = step; n < layers; n += step) {
    if (n > 1 && ((n - 1) * width) / layers >= 30 && ((layers - n) * width) / layers >= 30)
      inner.push(n)
  }
  return layers > 1 ? [1, ...inner, layers] : layers ? [1] : []
}

// A message as text and named holes: "a {x} b" → ["a ", {hole: "x"}, " b"].
export function pieces(template) {
  return template
    .split(/(\{\w+\})/)
    .filter(Boolean)
    .map((part) => (/^\{\w+\}$/.test(part) ? { hole: part.slice(1, -1) } : part))
}

// Bytes for people, in decimal units: 230.4 kB.
export function bytes(n) {
  const units = ["B", "kB", "MB", "GB", "TB"]
  let power = 0
  while (n >= 1000 && power < units.length - 1) [n, power] = [n / 1000, power + 1]
  return `${power === 0 ? n : n.toFixed(n < 100 ? 1 : 0)} ${units[power]}`
}

// 49152 → "49,152", the same in both languages.
export function thousands(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",")
}

// A signed number with a real minus.
export function signed(value, digits) {
  const text = value.toFixed(digits)
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−")
}

// The size of a change for people: 0.3 %, 28 %, × 172.
export function changed(value) {
  if (value >= 10) return `× ${value.toFixed(0)}`
  return `${(100 * value).toFixed(value < 0.1 ? 1 : 0)} %`
}

// Two shares with as many digits (3 to 8) as it takes to tell them apart.
export function apart(from, to) {
  let digits = 3
  while (digits < 8 && from.toFixed(digits) === to.toFixed(digits)) digits++
  return digits
}
