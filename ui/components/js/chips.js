// What the strip says about its chips, and which of a long prompt it shows. Pure.

import { fmt, percent } from "./dom.js"

// Width of a label in Latin letters; Chinese letters and emoji count twice.
export function cost(label) {
  let width = 3
  for (const char of label) width += char.codePointAt(0) >= 0x1100 ? 2 : 1
  return Math.min(width, 40)
}

// [head, tail]: chips before `head` and from `tail` on are shown; null when all fit `budget`.
export function collapse(labels, budget) {
  const costs = labels.map(cost)
  if (costs.reduce((a, b) => a + b, 0) <= budget) return null
  let head = 0
  let used = 0
  while (head < labels.length && used + costs[head] <= budget * 0.35) used += costs[head++]
  let tail = labels.length
  while (tail > head && used + costs[tail - 1] <= budget * 0.75) used += costs[--tail]
  tail = Math.min(tail, labels.length - 1)
  return tail - head < 2 ? null : [head, tail]
}

// The probability of a chip: by the chain rule, the product over its generated tokens.
export function chipProbability(chip) {
  return chip.steps.reduce((product, step) => product * step.p, 1)
}

// One line about a chip, in pieces to be joined with " · ".
export function describe(chip, s) {
  const { parts, steps } = chip
  const out = [chip.label]
  if (chip.special) out.push(s.control)
  if (parts.length === 1) out.push(fmt(s.id, { id: parts[0].id }))
  else out.push(fmt(s.parts_help, { n: parts.length, parts: parts.map((p) => `${p.label} (${p.id})`).join(" ") }))
  out.push(fmt(s.position, { n: parts[0].position }))
  if (!steps.length) return [...out, s.of_prompt]
  if (steps.length === 1) out.push(...describeStep(steps[0], s))
  else {
    const factors = steps.map((step) => percent(step.p)).join(" × ")
    out.push(fmt(s.product, { factors, p: percent(chipProbability(chip)) }))
    if (steps.some((step) => step.rule === "forced")) out.push(s.forced)
  }
  return out
}

export function describeStep(step, s) {
  const out = [fmt(s.model, { p: percent(step.p) }), fmt(s.filtered, { p: percent(step.after) }),
    fmt(s.rank, { n: step.rank })]
  return step.rule === "forced" ? [...out, s.forced] : out
}

// Where a click on a chip leads: its first step, or the next of its steps when one is in view.
export function target(chip, view) {
  const steps = chip.steps.map((step) => step.index)
  return steps[(steps.indexOf(view) + 1) % steps.length]
}

// What a screen reader hears of the step in view, in the language of the page; "" before the first.
export function announced({ view, steps, limit, strings, chips }) {
  if (view < 0) return ""
  const at = fmt(strings.at_token, { step: view + 1, limit, token: steps[view] })
  const step = chips.flatMap((chip) => chip.steps).find((s) => s.index === view)
  return step ? [at, fmt(strings.model, { p: percent(step.p) })].join(strings.comma) : at
}
