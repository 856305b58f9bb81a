// Attention weights as numbers and colours. Pure, so that node can test it.
// Everywhere: row = the position that attends (query), column = the one attended to (key).

// Base64 as bytes, or as little-endian float32.
export function bytesOf(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
}

export function weightsOf(text) {
  return new Float32Array(bytesOf(text).buffer)
}

// Rows from `first` on, row i with i + 1 weights: where (query, key) stands; -1 outside.
export function placeIn(first, query, key) {
  if (query < first || key > query || key < 0) return -1
  return (query * (query + 1) - first * (first + 1)) / 2 + key
}

// The weight of (query, key): exactly 0 above the diagonal, NaN in a row that was not sent.
export function weightAt(map, query, key) {
  if (key > query) return 0
  const place = placeIn(map.first, query, key)
  return place < 0 || place >= map.values.length ? NaN : map.values[place]
}

// The row of one query as [{key, weight}], the first token left out if `hide`.
export function rowAt(map, query, hide) {
  const out = []
  for (let key = hide ? 1 : 0; key <= query; key++) {
    const weight = weightAt(map, query, key)
    if (!Number.isNaN(weight)) out.push({ key, weight })
  }
  return out
}

// Who attends to one key, as [{key: query, weight}].
export function columnAt(map, key) {
  const out = []
  for (let query = Math.max(key, map.first); query < map.total; query++) {
    out.push({ key: query, weight: weightAt(map, query, key) })
  }
  return out
}

// Smallest and largest weight shown, and the smallest above 0 (the floor of a log scale).
export function rangeIn(each) {
  let [low, high, floor] = [Infinity, -Infinity, Infinity]
  each((weight) => {
    if (Number.isNaN(weight)) return
    if (weight < low) low = weight
    if (weight > high) high = weight
    if (weight > 0 && weight < floor) floor = weight
  })
  if (high < low) return { low: 0, high: 1, floor: 1e-6 }
  return { low, high, floor: Math.max(1e-6, Math.min(floor, high)) }
}

export function rangeOfMap(map, hide) {
  return rangeIn((see) => {
    for (let query = Math.max(map.first, hide ? 1 : 0); query < map.total; query++) {
      for (let key = hide ? 1 : 0; key <= query; key++) see(weightAt(map, query, key))
    }
  })
}

// 0 … 1 for a weight on a linear or logarithmic scale over the range of the data.
export function unitOf(weight, range, log) {
  const { low, high, floor } = range
  if (!(weight > 0) && log) return 0
  const [a, b, x] = log ? [Math.log(floor), Math.log(high), Math.log(weight)] : [low, high, weight]
  if (!(b > a)) return x >= b && weight > 0 ? 1 : 0
  return Math.max(0, Math.min(1, (x - a) / (b - a)))
}

// The weight that a place 0 … 1 of the legend stands for.
export function weightFor(unit, range, log) {
  const { low, high, floor } = range
  return log ? Math.exp(Math.log(floor) + unit * (Math.log(high) - Math.log(floor))) : low + unit * (high - low)
}

// One hue for attention, everywhere: pale for little, strong for much.
const ATTEND = {
  light: [[252, 243, 248], [219, 132, 184], [122, 10, 78]],
  dark: [[38, 26, 34], [160, 60, 118], [255, 190, 226]],
}

export function attendColour(unit, theme) {
  const [low, middle, high] = ATTEND[theme]
  const [from, to, x] = unit < 0.5 ? [low, middle, 2 * unit] : [middle, high, 2 * unit - 1]
  return from.map((value, i) => Math.round(value + (to[i] - value) * x))
}

// 256 colours as [r, g, b, r, g, b …].
export function attendTable(theme) {
  const out = new Uint8ClampedArray(768)
  for (let i = 0; i < 256; i++) out.set(attendColour(i / 255, theme), 3 * i)
  return out
}

// A weight for people: as many digits as tell it from 0, and never a false 0.
export function weightText(weight) {
  if (Number.isNaN(weight)) return "–"
  if (weight === 0) return "0"
  if (weight < 1e-6) return "< 0.000001"
  return weight >= 0.001 ? weight.toFixed(4) : weight.toFixed(6)
}

// Any number for people: −1.2346, 0.000012.
export function numberText(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–"
  if (value === Infinity || value === -Infinity) return value < 0 ? "−∞" : "∞"
  const size = Math.abs(value)
  const text = size !== 0 && (size < 10 ** -digits || size >= 1e7) ? size.toExponential(2) : size.toFixed(digits)
  return value < 0 ? `−${text.replace("e-", "e−")}` : text.replace("e-", "e−")
}

// At most `most` characters of a label.
export function clipLabel(label, most) {
  const letters = [...label]
  return letters.length <= most ? label : letters.slice(0, most - 1).join("") + "…"
}

// The step between marks of an axis, so that each has at least `room` pixels: 1, 2, 5, 10 …
export function everyNth(count, pixels, room) {
  const least = (room * count) / Math.max(1, pixels)
  for (let base = 1; ; base *= 10) {
    for (const step of [base, 2 * base, 5 * base]) if (step >= least) return step
  }
}
