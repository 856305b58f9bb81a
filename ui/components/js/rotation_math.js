// Rotary positions in the browser: the same arithmetic as core/position.py. Pure.

// Which two numbers of a head pair `i` takes: halves (i, i + d/2), or neighbours (2i, 2i + 1).
export function rotationMembers(i, dims, layout) {
  return layout === "halves" ? [i, i + dims / 2] : [2 * i, 2 * i + 1]
}

// The point (x, y) turned by `angle` radians, counter-clockwise.
export function rotationTurn([x, y], angle) {
  const [c, s] = [Math.cos(angle), Math.sin(angle)]
  return [x * c - y * s, x * s + y * c]
}

// A pair of a vector as a point.
export function rotationPoint(vector, i, rope) {
  const [a, b] = rotationMembers(i, rope.dims, rope.layout)
  return [vector[a], vector[b]]
}

// What each pair adds to q·k at distance 0 (`along`), and what turns in as the distance grows
// (`across`); `fixed` is what the numbers add that are not turned at all.
export function rotationTerms(q, k, rope) {
  const size = rope.scaling ** 2
  const terms = { along: [], across: [], fixed: 0 }
  for (let i = 0; i < rope.dims / 2; i++) {
    const [p, r] = [rotationPoint(q, i, rope), rotationPoint(k, i, rope)]
    terms.along.push(size * (p[0] * r[0] + p[1] * r[1]))
    terms.across.push(size * (p[0] * r[1] - p[1] * r[0]))
  }
  for (let i = rope.dims; i < q.length; i++) terms.fixed += q[i] * k[i]
  return terms
}

// What pair `i` adds when the key stands `distance` tokens before the query.
export function rotationPair(terms, rope, i, distance) {
  const angle = distance * rope.frequencies[i]
  return terms.along[i] * Math.cos(angle) + terms.across[i] * Math.sin(angle)
}

// The dot product of the whole head at that distance.
export function rotationWhole(terms, rope, distance) {
  let total = terms.fixed
  for (let i = 0; i < terms.along.length; i++) total += rotationPair(terms, rope, i, distance)
  return total
}

// The same the long way: turn every pair of q by m and of k by n, then multiply.
export function rotationDot(q, k, rope, m, n) {
  let total = 0
  for (let i = 0; i < rope.dims / 2; i++) {
    const a = rotationTurn(rotationPoint(q, i, rope), m * rope.frequencies[i])
    const b = rotationTurn(rotationPoint(k, i, rope), n * rope.frequencies[i])
    total += rope.scaling ** 2 * (a[0] * b[0] + a[1] * b[1])
  }
  for (let i = rope.dims; i < q.length; i++) total += q[i] * k[i]
  return total
}

// The values of `f` at 0 … last as [low, high] for each of at most `columns` stretches, so that
// a fast wave is drawn as the band that it fills, and not as whatever the pixels happen to hit.
export function rotationBands(f, last, columns) {
  const count = Math.min(columns, last + 1)
  const bands = []
  for (let c = 0; c < count; c++) {
    const from = Math.round((c * (last + 1)) / count)
    const to = Math.round(((c + 1) * (last + 1)) / count)
    let [low, high] = [Infinity, -Infinity]
    for (let d = from; d < to; d++) {
      const value = f(d)
      if (value < low) low = value
      if (value > high) high = value
    }
    bands.push({ from, to: to - 1, low, high })
  }
  return bands
}

// Tokens after which pair `i` has made a whole turn.
export function rotationWave(frequency) {
  return frequency === 0 ? Infinity : (2 * Math.PI) / Math.abs(frequency)
}

// Degrees within one turn, and the number of whole turns before it.
export function rotationAngle(position, frequency) {
  const turns = (position * frequency) / (2 * Math.PI)
  const whole = Math.trunc(turns)
  return { whole, degrees: 360 * (turns - whole) }
}

// Where the three sliders may stand: the key never after the query, both from 0 to `last`.
export function rotationMove(places, which, value, last) {
  const at = (x) => Math.max(0, Math.min(last, Math.round(x)))
  const { m, n } = places
  if (which === "m") return { m: at(value), n: Math.min(n, at(value)) }
  if (which === "n") return { m: Math.max(m, at(value)), n: at(value) }
  const step = Math.max(-n, Math.min(last - m, Math.round(value) - n))
  return { m: m + step, n: n + step }
}

// How far the sliders go: enough for the text, or as far as the reader wants.
// Distances named below a curve that ends at `last`: quarters of a round number, and the end.
export function rotationTicks(last) {
  const quarter = Math.round((last + 1) / 4)
  return [...new Set([0, quarter, 2 * quarter, 3 * quarter].filter((tick) => tick < last)), last]
}

export function rotationRanges(read, context) {
  const near = Math.max(64, 2 ** Math.ceil(Math.log2(Math.max(2, read))))
  const all = [near, 1024, context].filter((n) => n >= read && n <= Math.max(context, read))
  return [...new Set(all.length ? all : [Math.max(context, read)])].sort((a, b) => a - b)
}
