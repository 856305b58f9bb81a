// The decoding filters over the whole vocabulary, fast enough for a slider: the same mathematics
// as core/decode, tested against the same table of laws.
//
// Every filter keeps an *interval* of the tokens in descending order, so the vocabulary is sorted
// once (`prepare`) and a filter is two numbers, the ends of its interval: {start, length}. Only
// typical-p drops from the top, too. Running sums (`cumulative`, from the interval's start on)
// then give any probability, mass or cut-off without another pass.
//
// What looks at the text (penalties, banned texts, a pattern) changes single scores before any
// filter: prepare the changed scores, and ask `model` of the prepared raw ones.

export const TOLERANCE = 1e-6
export const TIE = 1e-9

// Sorts scores once. `order[r]` is the id at rank r (0 = highest, equal logits by id), `rank[id]`
// the inverse, `sorted` the scores in that order, `model` the distribution that they stand for.
export function prepare(logits) {
  const order = logits instanceof Float32Array ? decodeRadix(logits) : decodeCompared(logits)
  const size = order.length
  const sorted = new Float64Array(size)
  const rank = new Uint32Array(size)
  for (let r = 0; r < size; r++) {
    sorted[r] = logits[order[r]]
    rank[order[r]] = r
  }
  // NaN sorts to either end, by its sign.
  if (!(sorted[0] < Infinity) || Number.isNaN(sorted[size - 1])) {
    throw new RangeError("logits must be finite or -Infinity")
  }
  if (sorted[0] === -Infinity) throw new RangeError("every token is impossible")
  const model = decodeInterval(sorted, 1, 0, size)
  return { logits, order, rank, sorted, model, memo: model }
}

// settings: {temperature, top_k, top_p, min_p, typical_p, order}; null is "off". Each stage says
// how many tokens survive it and their mass under the distribution that entered it.
export function applyStages(prepared, settings) {
  const stages = []
  let before = prepared.model
  for (const name of settings.order) {
    const parameter = settings[name] ?? null
    const interval = decodeFilter(prepared, before, name, parameter)
    const survivors = interval.length
    stages.push({ name, parameter, survivors, mass: decodeMass(before, interval), interval })
    before = interval
  }
  let all = null
  return {
    prepared,
    stages,
    kept: before.length,
    interval: before,
    // By token id; 0 for removed tokens. Made when it is first asked for.
    get probabilities() {
      return (all ??= probabilitiesAfter(prepared, before))
    },
  }
}

// The distribution of one stage (`stage.interval`) or of the model (`prepared.model`), by token id.
export function probabilitiesAfter(prepared, interval) {
  const out = new Float64Array(prepared.order.length)
  const { start, length } = interval
  for (let r = start; r < start + length; r++) out[prepared.order[r]] = probabilityOfRank(interval, r)
  return out
}

// One token's probability after a stage.
export function probabilityAt(prepared, interval, id) {
  return probabilityOfRank(interval, prepared.rank[id])
}

// The same by rank, from 0; 0 for tokens outside.
export function probabilityOfRank({ sorted, t, total, start, length }, rank) {
  return rank >= start && rank < start + length ? Math.exp((sorted[rank] - sorted[start]) / t) / total : 0
}

// Whether a stage kept the token at a rank.
export function holds({ start, length }, rank) {
  return rank >= start && rank < start + length
}

// One array for each stage, in the order of `ids`.
export function stageProbabilities(result, ids) {
  const { prepared } = result
  return result.stages.map(({ interval }) =>
    Float64Array.from(ids, (id) => probabilityAt(prepared, interval, id)))
}

// What the tokens outside `ids` (all different) add up to: exactly 0 when none of them is left.
export function othersAt(prepared, interval, ids) {
  let shown = 0
  let left = interval.length
  for (const id of ids) {
    shown += probabilityAt(prepared, interval, id)
    if (holds(interval, prepared.rank[id])) left--
  }
  return left > 0 ? Math.max(0, 1 - shown) : 0
}

// The name of the first stage that dropped a token; null for survivors, and for tokens that the
// scores themselves rule out.
export function removedBy(result, id) {
  const rank = result.prepared.rank[id]
  if (rank >= result.prepared.model.length) return null
  return result.stages.find(({ interval }) => !holds(interval, rank))?.name ?? null
}

// The stretch [low, high) of a token on the draw bar, on which the survivors stand from likely to
// unlikely; null for removed tokens.
export function barOf(result, id) {
  const { cumulative, total, start } = result.interval
  const rank = result.prepared.rank[id]
  if (!holds(result.interval, rank)) return null
  const r = rank - start
  return [r ? cumulative[r - 1] / total : 0, cumulative[r] / total]
}

// The id on which the needle falls. Rounding can put u · total on the very end of the bar.
export function draw(result, u) {
  const { cumulative, total, start, length } = result.interval
  const r = decodeFirst(length, (i) => cumulative[i] > u * total)
  return result.prepared.order[start + Math.min(r, length - 1)]
}

// Of probabilities that sum to 1; 0 · ln 0 counts as 0.
export function entropy(probabilities) {
  let sum = 0
  for (const p of probabilities) if (p > 0) sum -= p * Math.log(p)
  const nats = Math.max(0, sum)
  return { nats, bits: nats / Math.LN2 }
}

// The same of a stage, without making its array: ln total + mean of (highest - score) ÷ T.
export function entropyAfter(interval) {
  const { sorted, t, total, start, length } = interval
  let mean = 0
  for (let r = start; r < start + length; r++) {
    const depth = (sorted[r] - sorted[start]) / t
    mean += Math.exp(depth) * depth
  }
  const nats = Math.max(0, Math.log(total) - mean / total)
  return { nats, bits: nats / Math.LN2 }
}

// `length` ranks from `start` on at temperature t > 0. `cumulative[i]` sums exp((score - highest) ÷ t)
// over the first i + 1 of them: at most 1 each, so nothing overflows. Tokens whose probability is 0
// fall off.
function decodeInterval(sorted, t, start, length) {
  const cumulative = new Float64Array(length)
  let sum = 0
  for (let i = 0; i < length; i++) cumulative[i] = sum += Math.exp((sorted[start + i] - sorted[start]) / t)
  const whole = { sorted, t, cumulative, total: sum, start, length }
  const alive = decodeFirst(length, (i) => probabilityOfRank(whole, start + i) === 0)
  return decodeCut(whole, 0, alive)
}

// `length` of an interval's tokens, without the `first` ones.
function decodeCut(interval, first, length) {
  if (first > 0) return decodeInterval(interval.sorted, interval.t, interval.start + first, length)
  if (length >= interval.length) return interval
  return { ...interval, length, total: interval.cumulative[length - 1] }
}

// Of an interval within another, under the distribution of the outer one.
function decodeMass({ cumulative, total, start }, inner) {
  const first = inner.start - start
  const above = first > 0 ? cumulative[first - 1] : 0
  return Math.min(1, (cumulative[first + inner.length - 1] - above) / total)
}

function decodeFilter(prepared, before, name, parameter) {
  if (parameter === null) return before
  if (name === "temperature") return decodeHeated(prepared, before, parameter)
  if (name === "typical_p") return decodeCut(before, ...decodeTypicalP(before, parameter))
  const kept = { top_k: () => parameter, top_p: decodeTopP, min_p: decodeMinP }[name]
  return decodeCut(before, 0, Math.max(1, kept(before, parameter)))
}

// Temperature 0 leaves the highest token. The last sums are kept, so that dragging another slider
// costs no exponentials.
function decodeHeated(prepared, before, t) {
  if (t === 0) return decodeCut(before, 0, 1)
  if (t === before.t) return before
  const { memo } = prepared
  const same = memo.start === before.start && memo.cumulative.length === before.length
  if (memo.t === t && same) return memo
  return (prepared.memo = decodeInterval(prepared.sorted, t, before.start, before.length))
}

// The shortest beginning whose mass reaches p; for p = 1 that is everything.
function decodeTopP({ cumulative, total, length }, p) {
  if (p >= 1) return length
  const goal = (p - TOLERANCE) * total
  return 1 + decodeFirst(length, (i) => cumulative[i] >= goal)
}

function decodeMinP({ sorted, t, start, length }, share) {
  if (share === 0) return length
  const lowest = sorted[start] + t * Math.log(share * (1 - TOLERANCE))
  return decodeFirst(length, (i) => sorted[start + i] < lowest)
}

// [tokens dropped from the top, tokens kept]: those whose surprise -ln p is closest to the entropy,
// until their mass reaches p. Tokens at the same distance stand or fall together. The distance
// first falls and then rises along the order, so what lies within one is an interval.
function decodeTypicalP(interval, p) {
  const { sorted, t, cumulative, total, start, length } = interval
  if (p >= 1) return [0, length]
  const top = Math.log(total)
  const middle = entropyAfter(interval).nats
  const goal = (p - TOLERANCE) * total
  const surprise = (i) => top - (sorted[start + i] - sorted[start]) / t
  const within = (distance) => [
    decodeFirst(length, (i) => surprise(i) >= middle - distance - TIE),
    decodeFirst(length, (i) => surprise(i) >= middle + distance + TIE),
  ]
  const reached = (distance) => {
    const [low, high] = within(distance)
    return high > low && cumulative[high - 1] - (low > 0 ? cumulative[low - 1] : 0) >= goal
  }
  const turn = decodeFirst(length, (i) => surprise(i) >= middle)
  const above = decodeFirst(turn, (i) => reached(middle - surprise(turn - 1 - i)))
  const below = decodeFirst(length - turn, (i) => reached(surprise(turn + i) - middle))
  const enough = Math.min(
    above < turn ? middle - surprise(turn - 1 - above) : Infinity,
    below < length - turn ? surprise(turn + below) - middle : Infinity,
  )
  const [low, high] = within(enough)
  return [low, high - low]
}

// The first of 0 … length - 1 from which on `test` holds; `length` when it never does.
function decodeFirst(length, test) {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (test(middle)) high = middle
    else low = middle + 1
  }
  return low
}

// Ids by descending float32: a stable counting sort of the lower, then the upper 16 bits of the
// order-preserving bit pattern.
function decodeRadix(logits) {
  const size = logits.length
  const keys = new Uint32Array(new Float32Array(logits).buffer)
  for (let i = 0; i < size; i++) {
    const bits = keys[i] === 0x80000000 ? 0 : keys[i] // -0 is 0
    keys[i] = bits >>> 31 ? bits : ~bits & 0x7fffffff
  }
  let from = new Uint32Array(size)
  for (let i = 0; i < size; i++) from[i] = i
  for (const shift of [0, 16]) {
    const next = new Uint32Array(65537)
    for (let i = 0; i < size; i++) next[((keys[i] >>> shift) & 0xffff) + 1]++
    for (let d = 0; d < 65536; d++) next[d + 1] += next[d]
    const to = new Uint32Array(size)
    for (let i = 0; i < size; i++) to[next[(keys[from[i]] >>> shift) & 0xffff]++] = from[i]
    from = to
  }
  return from
}

function decodeCompared(logits) {
  const ids = Array.from(logits, (_, id) => id)
  if (Array.prototype.some.call(logits, Number.isNaN)) throw new RangeError("a logit is NaN")
  return Uint32Array.from(ids.sort((a, b) => logits[b] - logits[a] || a - b))
}
