// What the Probabilities page shows, as plain values: no DOM in here. The mathematics itself is
// in decode.js; ranks count from 0, probabilities are of the whole vocabulary.
import { applyStages, barOf, draw, entropyAfter, othersAt, probabilityAt, removedBy } from "./decode.js"

export const STAGES_ORDER = ["temperature", "top_k", "top_p", "min_p"]
export const STAGES_OFF = { temperature: 1, top_k: null, top_p: null, min_p: null }
const STAGES_FLOOR = 1e-6
const STAGES_LINEAR = 60

export function stagesIsOff(name, value) {
  return value === STAGES_OFF[name]
}

// What a stage is switched on with when it has had no value yet.
export function stagesFirst(name, size) {
  return { temperature: 0.7, top_k: Math.min(size <= STAGES_LINEAR ? 2 : 50, size), top_p: 0.9, min_p: 0.05 }[name]
}

// The values that a slider stops at, so that one press of an arrow key always changes something:
// fine where small changes matter, coarse elsewhere.
export function stagesTicks(name, size) {
  if (name === "temperature") return [...stagesRange(0, 2, 0.01), ...stagesRange(2.05, 5, 0.05)]
  if (name === "top_p") return [...stagesRange(0.01, 0.99, 0.01), ...stagesRange(0.991, 0.999, 0.001), 1]
  if (name === "min_p") return [...stagesRange(0, 0.1, 0.001), ...stagesRange(0.11, 1, 0.01)]
  const out = []
  for (let k = 1; k < size; k = Math.max(k + 1, Math.round(k * 1.04))) out.push(k)
  return [...out, size]
}

function stagesRange(low, high, step) {
  const count = Math.round((high - low) / step)
  return Array.from({ length: count + 1 }, (_, i) => Number((low + i * step).toFixed(3)))
}

// The index of the tick nearest to a value.
export function stagesNearest(ticks, value) {
  let best = 0
  for (let i = 1; i < ticks.length; i++) {
    if (Math.abs(ticks[i] - value) < Math.abs(ticks[best] - value)) best = i
  }
  return best
}

// A number typed for a stage, or null when it is not legal (the borders of core/settings.py).
export function stagesLegal(name, text) {
  const value = text.trim() === "" ? NaN : Number(text)
  if (!Number.isFinite(value)) return null
  if (name === "top_k") return Number.isInteger(value) && value >= 1 && value <= 2 ** 31 ? value : null
  if (name === "temperature") return value >= 0 && value <= 100 ? value : null
  return value <= 1 && (name === "top_p" ? value > 0 : value >= 0) ? value : null
}

// The order after moving one stage by -1 or +1; the same array when it stands at the end.
export function stagesMoved(order, name, by) {
  const from = order.indexOf(name)
  const to = from + by
  if (to < 0 || to >= order.length) return order
  const out = [...order]
  out.splice(to, 0, ...out.splice(from, 1))
  return out
}

// Everything that follows from the settings: the stages, who is left, and who is chosen.
// `dice` = {u, forced, strategy}; u is used only where dice are thrown.
export function stagesOutcome(prepared, settings, { u, forced, strategy }) {
  const result = applyStages(prepared, settings)
  const greedy = strategy === "greedy" || settings.temperature === 0
  const drawn = greedy ? prepared.order[0] : draw(result, u)
  const { model } = prepared
  prepared.bits ??= entropyAfter(model).bits
  return {
    result,
    greedy,
    drawn,
    chosen: forced ?? drawn,
    rule: forced !== null ? "forced" : greedy ? "greedy" : "sample",
    bar: barOf(result, drawn),
    kept: result.kept,
    heldByModel: Math.min(1, model.cumulative[Math.min(result.kept, model.length) - 1] / model.total),
    bitsModel: prepared.bits,
    bitsAfter: entropyAfter(result.prefix).bits,
  }
}

// One token of the vocabulary: its logit, both probabilities, and which stage dropped it.
export function stagesRow(prepared, outcome, id) {
  return {
    id,
    rank: prepared.rank[id] + 1,
    logit: prepared.logits[id],
    model: probabilityAt(prepared, prepared.model, id),
    after: probabilityAt(prepared, outcome.result.prefix, id),
    by: removedBy(outcome.result, id),
  }
}

// The tokens without a row of their own, as one.
export function stagesOthers(prepared, outcome, ids) {
  const { kept, prefix } = outcome.result
  return {
    count: prepared.order.length - ids.length,
    kept: kept - ids.filter((id) => prepared.rank[id] < kept).length,
    model: othersAt(prepared, prepared.model, ids),
    after: othersAt(prepared, prefix, ids),
  }
}

// Where the left edge of a rank stands on a chart's axis, 0 … 1: bars of equal width for small
// vocabularies, a logarithmic axis for large ones, so that all of them fit.
export function stagesX(rank, size) {
  return size <= STAGES_LINEAR ? rank / size : Math.log1p(rank) / Math.log1p(size)
}

// Ranks at which a curve changes visibly; the last one is followed by `size`.
export function stagesSamples(size) {
  if (size <= STAGES_LINEAR) return Array.from({ length: size }, (_, r) => r)
  const out = []
  for (let r = 0; r < size; r = Math.max(r + 1, Math.floor(r * 1.06))) out.push(r)
  return out
}

// A length 0 … 1 for a probability on a linear axis that ends at `top`, or on a logarithmic one
// from 10⁻⁶ to 1.
export function stagesLength(p, top, log) {
  if (!(p > 0)) return 0
  if (log) return Math.min(1, Math.max(0.004, 1 - Math.log(p) / Math.log(STAGES_FLOOR)))
  return Math.min(1, p / top)
}

// The end of a linear axis: a round number just above the largest bar.
export function stagesTop(largest) {
  return [0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8].find((end) => largest <= end) ?? 1
}

// The draw bar: the likeliest survivors as [low, high) stretches, then all the rest as one.
export function stagesBar(outcome, most, least) {
  const { prepared, prefix } = outcome.result
  const { cumulative, total, length } = prefix
  const parts = []
  let low = 0
  for (let r = 0; r < Math.min(length, most); r++) {
    const high = r === length - 1 ? 1 : cumulative[r] / total
    if (high - low < least && r > 0) break
    parts.push({ id: prepared.order[r], low, high, count: 1 })
    low = high
  }
  if (parts.length < length) parts.push({ id: null, low, high: 1, count: length - parts.length })
  return parts
}

// How many logits fall into each of `bins` equal intervals; impossible tokens are left out.
export function stagesHistogram(prepared, bins) {
  const { sorted } = prepared
  const high = sorted[0]
  let last = sorted.length - 1
  while (sorted[last] === -Infinity) last--
  const low = sorted[last]
  const counts = new Array(bins).fill(0)
  const width = (high - low) / bins || 1
  for (let r = 0; r <= last; r++) counts[Math.min(bins - 1, Math.floor((sorted[r] - low) / width))]++
  return { low, high, counts, impossible: sorted.length - 1 - last }
}

// Labels as they are compared in a search; made once for each vocabulary.
export function stagesFolded(labels) {
  return labels.map((label) => label.toLowerCase())
}

// Ids that match: a number or #number is an id; then whole labels, beginnings, insides, each by
// the model's rank. A space is typed for ␣, and a label's leading ␣ may be left out.
export function stagesSearch(folded, prepared, query, limit) {
  const sought = query.trim() === "" ? "" : query.toLowerCase().replaceAll(" ", "␣")
  if (!sought) return { ids: [], total: 0 }
  const groups = [[], [], [], []]
  const number = /^#?(\d{1,9})$/.exec(query.trim())
  if (number && Number(number[1]) < prepared.order.length) groups[0].push(Number(number[1]))
  for (let id = 0; id < folded.length && id < prepared.order.length; id++) {
    const at = folded[id].indexOf(sought)
    if (at < 0 || groups[0][0] === id) continue
    const start = at === 0 || (at === 1 && folded[id][0] === "␣")
    groups[!start ? 3 : folded[id].length === at + sought.length ? 1 : 2].push(id)
  }
  for (const group of groups) group.sort((a, b) => prepared.rank[a] - prepared.rank[b])
  const ids = groups.flat()
  return { ids: ids.slice(0, limit), total: ids.length }
}

// A logit for people: 17.37, -2.5, -∞.
export function stagesNumber(value, digits = 2) {
  if (value === -Infinity) return "−∞"
  const text = value.toFixed(digits)
  return text.replace("-", "−")
}

// The parameter of a stage as it is written: 0.7, 50, 0.925.
export function stagesParameter(value) {
  return String(Number(value.toFixed(4)))
}

// A difference for people: 0, 3 × 10⁻¹⁷, 0.25.
export function stagesTiny(value) {
  if (value === 0) return "0"
  if (value >= 0.01) return value.toFixed(2)
  const [digits, power] = value.toExponential(0).split("e")
  const raised = [...power.replace("-", "")].map((d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]).join("")
  return `${digits} × 10⁻${raised}`
}
