// The decoding filters over the whole vocabulary, fast enough for a slider: the same mathematics
// as core/decode, tested against the same table of laws.
//
// Every filter keeps a *prefix* of the tokens in descending order, so the vocabulary is sorted
// once (`prepare`) and a filter is one number, the length of its prefix. Running sums then give
// any probability, mass or cut-off without another pass.

export const TOLERANCE = 1e-6

// Sorts logits once. `order[r]` is the id at rank r (0 = highest, equal logits by id), `rank[id]`
// the inverse, `sorted` the logits in that order, `model` the model's own distribution.
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
  const model = decodePrefix(sorted, 1, size)
  return { logits, order, rank, sorted, model, memo: model }
}

// settings: {temperature, top_k, top_p, min_p, order}; null is "off". Each stage says how many
// tokens survive it and their mass under the distribution that entered it.
export function applyStages(prepared, settings) {
  const stages = []
  let before = prepared.model
  for (const name of settings.order) {
    const parameter = settings[name] ?? null
    const prefix = decodeFilter(prepared, before, name, parameter)
    const survivors = prefix.length
    stages.push({ name, parameter, survivors, mass: decodeMass(before, survivors), prefix })
    before = prefix
  }
  let all = null
  return {
    prepared,
    stages,
    kept: before.length,
    prefix: before,
    // By token id; 0 for removed tokens. Made when it is first asked for.
    get probabilities() {
      return (all ??= probabilitiesAfter(prepared, before))
    },
  }
}

// The distribution of one stage (`stage.prefix`) or of the model (`prepared.model`), by token id.
export function probabilitiesAfter(prepared, prefix) {
  const out = new Float64Array(prepared.order.length)
  for (let r = 0; r < prefix.length; r++) out[prepared.order[r]] = decodeAt(prefix, r)
  return out
}

// One token's probability after a stage.
export function probabilityAt(prepared, prefix, id) {
  return decodeAt(prefix, prepared.rank[id])
}

// One array for each stage, in the order of `ids`.
export function stageProbabilities(result, ids) {
  const { prepared } = result
  return result.stages.map(({ prefix }) =>
    Float64Array.from(ids, (id) => probabilityAt(prepared, prefix, id)))
}

// What the tokens outside `ids` (all different) add up to: exactly 0 when none of them is left.
export function othersAt(prepared, prefix, ids) {
  let shown = 0
  let left = prefix.length
  for (const id of ids) {
    shown += probabilityAt(prepared, prefix, id)
    if (prepared.rank[id] < prefix.length) left--
  }
  return left > 0 ? Math.max(0, 1 - shown) : 0
}

// The name of the first stage that dropped a token; null for survivors, and for tokens that the
// model itself rules out.
export function removedBy(result, id) {
  const rank = result.prepared.rank[id]
  if (rank >= result.prepared.model.length) return null
  return result.stages.find(({ survivors }) => rank >= survivors)?.name ?? null
}

// The stretch [low, high) of a token on the draw bar, on which the survivors stand from likely to
// unlikely; null for removed tokens.
export function barOf(result, id) {
  const { cumulative, total, length } = result.prefix
  const r = result.prepared.rank[id]
  if (r >= length) return null
  return [r ? cumulative[r - 1] / total : 0, cumulative[r] / total]
}

// The id on which the needle falls. Rounding can put u · total on the very end of the bar.
export function draw(result, u) {
  const { cumulative, total, length } = result.prefix
  const r = decodeFirst(length, (i) => cumulative[i] > u * total)
  return result.prepared.order[Math.min(r, length - 1)]
}

// Of probabilities that sum to 1; 0 · ln 0 counts as 0.
export function entropy(probabilities) {
  let sum = 0
  for (const p of probabilities) if (p > 0) sum -= p * Math.log(p)
  const nats = Math.max(0, sum)
  return { nats, bits: nats / Math.LN2 }
}

// The same of a stage, without making its array: ln total + mean of (highest - logit) ÷ T.
export function entropyAfter(prefix) {
  let sum = 0
  for (let r = 0; r < prefix.length; r++) {
    const p = decodeAt(prefix, r)
    sum -= p * Math.log(p)
  }
  const nats = Math.max(0, sum)
  return { nats, bits: nats / Math.LN2 }
}

// The `length` highest tokens at temperature t > 0. `cumulative[r]` sums exp((logit - highest) ÷ t)
// over ranks 0 … r: at most 1 each, so nothing overflows. Tokens whose probability is 0 fall off.
function decodePrefix(sorted, t, length) {
  const cumulative = new Float64Array(length)
  let sum = 0
  for (let r = 0; r < length; r++) cumulative[r] = sum += Math.exp((sorted[r] - sorted[0]) / t)
  const whole = { sorted, t, cumulative, total: sum, length }
  const alive = decodeFirst(length, (r) => decodeAt(whole, r) === 0)
  return decodeCut(whole, alive)
}

function decodeCut(prefix, length) {
  if (length >= prefix.length) return prefix
  return { ...prefix, length, total: prefix.cumulative[length - 1] }
}

function decodeAt({ sorted, t, total, length }, rank) {
  return rank < length ? Math.exp((sorted[rank] - sorted[0]) / t) / total : 0
}

function decodeMass(before, length) {
  return Math.min(1, before.cumulative[length - 1] / before.total)
}

function decodeFilter(prepared, before, name, parameter) {
  if (parameter === null) return before
  if (name === "temperature") return decodeHeated(prepared, before, parameter)
  const kept = { top_k: () => parameter, top_p: decodeTopP, min_p: decodeMinP }[name]
  return decodeCut(before, Math.max(1, kept(before, parameter)))
}

// Temperature 0 leaves the highest token. The last sums are kept, so that dragging another slider
// costs no exponentials.
function decodeHeated(prepared, before, t) {
  if (t === 0) return decodeCut(before, 1)
  if (t === before.t) return before
  const { memo } = prepared
  if (memo.t === t && memo.cumulative.length === before.length) return memo
  return (prepared.memo = decodePrefix(prepared.sorted, t, before.length))
}

// The shortest prefix whose mass reaches p; for p = 1 that is everything.
function decodeTopP({ cumulative, total, length }, p) {
  if (p >= 1) return length
  const goal = (p - TOLERANCE) * total
  return 1 + decodeFirst(length, (r) => cumulative[r] >= goal)
}

function decodeMinP({ sorted, t, length }, share) {
  if (share === 0) return length
  const lowest = sorted[0] + t * Math.log(share * (1 - TOLERANCE))
  return decodeFirst(length, (r) => sorted[r] < lowest)
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
