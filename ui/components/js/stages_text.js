// The stages that look at the text so far and change single scores, before any filter: the same
// mathematics as core/decode. Pure: no DOM in here.
//
// `text` = [[id, times generated], …], one entry for each different token of prompt and run.
// `forbidden` = {stage: ids}, for stages whose rule only Python can work out.
import { prepare } from "./decode.js"

export const TEXT_STAGES = [
  "repetition_penalty", "presence_penalty", "frequency_penalty", "no_repeat_ngram", "banned", "pattern",
]
export const TEXT_NUMBERS = TEXT_STAGES.slice(0, 4)
const TEXT_SHOWN = 4
const TEXT_LARGEST = (2 - 2 ** -23) * 2 ** 127
const textExact = (x) => x

// What a penalty makes of one score, in the number format of the scores, as Python does; the
// same score where the token is none of its business.
export function textScore(name, value, score, times, round = Math.fround) {
  const penalty = round(value)
  if (name === "repetition_penalty") {
    return Math.min(round(score < 0 ? score * penalty : score / penalty), TEXT_LARGEST)
  }
  if (times === 0) return score
  const paid = name === "frequency_penalty" ? round(times * penalty) : penalty
  return Math.min(round(score - paid), TEXT_LARGEST)
}

// Those that are on, in their fixed order.
export function textOn(settings) {
  return TEXT_STAGES.filter((name) => !textIsOff(settings[name]))
}

export function textIsOff(value) {
  return value === null || value === undefined || value.length === 0
}

// What the stages that are on do, one after the other:
// `steps`: how many scores each changed, how many tokens it forbade, and what became of the
// likeliest of them; `known` is false where the forbidden tokens are still being worked out.
// `logits`: the scores at the end. `by[id]`: which step (from 1) forbade a token, 0 for none.
export function textSteps(raw, settings, text, forbidden) {
  const logits = raw.logits.slice()
  const by = new Uint8Array(logits.length)
  const round = logits instanceof Float32Array ? Math.fround : textExact
  const steps = textOn(settings).map((name, i) => {
    const step = { name, parameter: settings[name], known: true, changed: 0, forbidden: 0, moved: [] }
    const note = (id, after) => {
      const before = logits[id]
      if (before === -Infinity || before === after) return
      logits[id] = after
      textFirst(step.moved, { id, before, after, rank: raw.rank[id] })
      if (after > -Infinity) return step.changed++
      by[id] = i + 1
      step.forbidden++
    }
    if (textIsPenalty(name)) {
      for (const [id, times] of text) note(id, textScore(name, settings[name], logits[id], times, round))
    } else {
      step.known = name in forbidden
      for (const id of forbidden[name] ?? []) note(id, -Infinity)
    }
    return step
  })
  return { steps, logits, by }
}

// The scores that enter the first filter, sorted; `raw` itself where no stage touched any.
export function textPrepared(raw, { steps, logits }) {
  return steps.some((step) => step.changed || step.forbidden) ? prepare(logits) : raw
}

// The name of the stage that took a token out; null for those that enter the filters, and for
// tokens that the model itself rules out.
export function textRemovedBy(raw, processed, { steps, by }, id) {
  if (by[id]) return steps[by[id] - 1].name
  const gone = processed.rank[id] >= processed.model.length && raw.rank[id] < raw.model.length
  // A score so low that its probability is 0.
  return gone ? (steps.findLast((step) => step.changed)?.name ?? null) : null
}

export function textIsPenalty(name) {
  return name.endsWith("_penalty")
}

// Keeps the best-ranked items of a list, in their order.
function textFirst(list, item) {
  const place = list.findIndex((other) => other.rank > item.rank)
  if (place < 0 && list.length === TEXT_SHOWN) return
  list.splice(place < 0 ? list.length : place, 0, item)
  if (list.length > TEXT_SHOWN) list.pop()
}

// Ids out of what Python sends: a list, or one bit an id (lowest first) in base64.
export function textIds(sent) {
  if (typeof sent !== "string") return sent
  const bytes = atob(sent)
  const out = []
  for (let i = 0; i < bytes.length; i++) {
    for (let byte = bytes.charCodeAt(i), id = 8 * i; byte; byte >>= 1, id++) if (byte & 1) out.push(id)
  }
  return out
}
