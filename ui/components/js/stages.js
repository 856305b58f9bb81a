// What the Probabilities page shows, as plain values: no DOM in here. The mathematics itself is
// in decode.js; ranks count from 0, probabilities are of the whole vocabulary.
import { applyStages, barOf, draw, entropyAfter, holds, othersAt, probabilityAt, removedBy } from "./decode.js"
import { TEXT_NUMBERS, textIds, textPrepared, textRemovedBy, textSteps } from "./stages_text.js"

export const STAGES_ORDER = ["temperature", "top_k", "top_p", "min_p", "typical_p"]
export const STAGES_OFF = {
  temperature: 1, top_k: null, top_p: null, min_p: null, typical_p: null,
  repetition_penalty: null, presence_penalty: null, frequency_penalty: null, no_repeat_ngram: null,
  banned: [], pattern: "",
}
// Those that have no card while they are off; the last four look at the text.
export const STAGES_FURTHER = ["typical_p", ...TEXT_NUMBERS]
const STAGES_FLOOR = 1e-6
const STAGES_LINEAR = 60
const STAGES_NGRAM = 12
// The borders of core/settings.py, and how fine a press of the arrow keys is.
const STAGES_RANGE = {
  temperature: { low: 0, high: 100, step: 0.1 },
  top_k: { low: 1, high: 2 ** 31, step: 1, whole: true },
  top_p: { low: 0, high: 1, step: 0.01, open: true },
  min_p: { low: 0, high: 1, step: 0.01 },
  typical_p: { low: 0, high: 1, step: 0.01, open: true },
  repetition_penalty: { low: 0.01, high: 10, step: 0.01 },
  presence_penalty: { low: -10, high: 10, step: 0.1 },
  frequency_penalty: { low: -10, high: 10, step: 0.1 },
  no_repeat_ngram: { low: 1, high: 100, step: 1, whole: true },
}

export function stagesRangeOf(name) {
  return STAGES_RANGE[name]
}

export function stagesIsOff(name, value) {
  return value === STAGES_OFF[name] || (name in STAGES_RANGE ? false : value.length === 0)
}

export function stagesSame(one, other) {
  return one === other || (Array.isArray(one) && one.join("\n") === other.join("\n"))
}

// What a stage is switched on with when it has had no value yet.
export function stagesFirst(name, size) {
  if (name === "top_k") return Math.min(size <= STAGES_LINEAR ? 2 : 50, size)
  return {
    temperature: 0.7, top_p: 0.9, min_p: 0.05, typical_p: 0.9,
    repetition_penalty: 1.3, presence_penalty: 1, frequency_penalty: 0.5, no_repeat_ngram: 3,
  }[name]
}

// The settings after a change of one stage: typical-p stands in the order only where it is on.
export function stagesWith(settings, name, value) {
  let { order } = settings
  if (name === "typical_p" && value === null) order = order.filter((other) => other !== name)
  if (name === "typical_p" && value !== null && !order.includes(name)) order = [...order, name]
  return { ...settings, [name]: value, order }
}

// The usual order of the filters that are shown.
export function stagesUsual(order) {
  return STAGES_ORDER.filter((name) => order.includes(name))
}

// How wide each of `count` cards is on a grid of 60 columns with at most `most` of them in a row:
// rows of nearly equal length, the shorter ones first.
export function stagesSpans(count, most) {
  const rows = Math.ceil(count / most)
  const out = []
  for (let row = 0; row < rows; row++) {
    const here = Math.floor((count - out.length) / (rows - row))
    for (let i = 0; i < here; i++) out.push(60 / here)
  }
  return out
}

// The values that a slider stops at, so that one press of an arrow key always changes something:
// fine where small changes matter, coarse elsewhere.
export function stagesTicks(name, size) {
  if (name === "temperature") return [...stagesRange(0, 2, 0.01), ...stagesRange(2.05, 5, 0.05)]
  if (name === "top_p" || name === "typical_p") {
    return [...stagesRange(0.01, 0.99, 0.01), ...stagesRange(0.991, 0.999, 0.001), 1]
  }
  if (name === "min_p") return [...stagesRange(0, 0.1, 0.001), ...stagesRange(0.11, 1, 0.01)]
  if (name === "repetition_penalty") return [...stagesRange(0.5, 2, 0.01), ...stagesRange(2.1, 10, 0.1)]
  if (name === "no_repeat_ngram") return stagesRange(1, STAGES_NGRAM, 1)
  if (name.endsWith("_penalty")) return stagesRange(-2, 10, 0.05)
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
  const { low, high, whole, open } = STAGES_RANGE[name]
  const legal = (open ? value > low : value >= low) && value <= high && (!whole || Number.isInteger(value))
  return legal ? value : null
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

// What the stages that look at the text make of the scores; `sent` is what Python worked out:
// {text, forbidden, settings}. Rules that were changed since then wait for Python.
export function stagesText(raw, settings, sent) {
  const told = Object.entries(sent.forbidden).filter(([name]) => stagesSame(settings[name], sent.settings[name]))
  const found = textSteps(raw, settings, sent.text, Object.fromEntries(told.map(([name, ids]) => [name, textIds(ids)])))
  return { ...found, prepared: textPrepared(raw, found) }
}

// Everything that follows from the settings: the stages, who is left, and who is chosen.
// `dice` = {u, forced, strategy}; u is used only where dice are thrown. `text` is the answer of
// `stagesText`, null where no stage looks at a text.
export function stagesOutcome(raw, settings, { u, forced, strategy }, text = null) {
  const prepared = text?.prepared ?? raw
  const result = applyStages(prepared, settings)
  const greedy = strategy === "greedy" || settings.temperature === 0
  const drawn = greedy ? prepared.order[0] : draw(result, u)
  raw.bits ??= entropyAfter(raw.model).bits
  return {
    result,
    text,
    greedy,
    drawn,
    chosen: forced ?? drawn,
    rule: forced !== null ? "forced" : greedy ? "greedy" : "sample",
    bar: barOf(result, drawn),
    kept: result.kept,
    heldByModel: stagesHeld(raw, result),
    bitsModel: raw.bits,
    bitsAfter: entropyAfter(result.interval).bits,
  }
}

// The probability that the model gives to the tokens that are left.
function stagesHeld(raw, { prepared, interval }) {
  const { model } = raw
  if (prepared === raw && interval.start === 0) {
    return Math.min(1, model.cumulative[Math.min(interval.length, model.length) - 1] / model.total)
  }
  let sum = 0
  for (let r = interval.start; r < interval.start + interval.length; r++) {
    sum += probabilityAt(raw, model, prepared.order[r])
  }
  return Math.min(1, sum)
}

// One token of the vocabulary: its logit, before and after what looked at the text, both
// probabilities, and which stage dropped it.
export function stagesRow(raw, outcome, id) {
  const { result, text } = outcome
  return {
    id,
    rank: raw.rank[id] + 1,
    logit: raw.logits[id],
    score: result.prepared.logits[id],
    model: probabilityAt(raw, raw.model, id),
    after: probabilityAt(result.prepared, result.interval, id),
    by: (text && textRemovedBy(raw, result.prepared, text, id)) ?? removedBy(result, id),
  }
}

// The tokens without a row of their own, as one.
export function stagesOthers(raw, outcome, ids) {
  const { prepared, interval, kept } = outcome.result
  return {
    count: raw.order.length - ids.length,
    kept: kept - ids.filter((id) => holds(interval, prepared.rank[id])).length,
    model: othersAt(raw, raw.model, ids),
    after: othersAt(prepared, interval, ids),
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
  const { prepared, interval } = outcome.result
  const { start, cumulative, total, length } = interval
  const parts = []
  let low = 0
  for (let r = 0; r < Math.min(length, most); r++) {
    const high = r === length - 1 ? 1 : cumulative[r] / total
    if (high - low < least && r > 0) break
    parts.push({ id: prepared.order[start + r], low, high, count: 1 })
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
