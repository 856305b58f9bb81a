// The text of the strip as chips: prompt neutral, new tokens coloured by their probability.

import { el, fmt, percent } from "./dom.js"
import { ramp } from "./ramp.js"
import { chipProbability, collapse, describe } from "./chips.js"

const LETTER = 8.6 // px of an average Latin letter, to guess what fits two lines
const BLANKS = /[␣↵⇥]+/g

// The label with its marks for blanks set apart, so that they can be drawn softer.
function labelNodes(label) {
  const out = []
  let last = 0
  for (const match of label.matchAll(BLANKS)) {
    out.push(label.slice(last, match.index), el("span", { class: "blank" }, match[0]))
    last = match.index + match[0].length
  }
  return [...out, label.slice(last)].filter((piece) => piece !== "")
}

function classes(chip, view) {
  const steps = chip.steps
  return ["chip", steps.length ? "new" : "given",
    chip.special && "control",
    steps.some((s) => s.rule === "forced") && "forced",
    steps.some((s) => s.index === view) && "current",
    steps.length && steps[0].index > view && "later"].filter(Boolean).join(" ")
}

function chipNode(chip, data, theme) {
  const fresh = chip.steps.length > 0
  const later = fresh && chip.steps[0].index > data.view
  const current = chip.steps.some((s) => s.index === data.view)
  const about = describe(chip, data.strings).join(" · ")
  const style = fresh && !later ? ramp(chipProbability(chip), theme) : {}
  const node = el(fresh ? "button" : "span", {
    class: classes(chip, data.view), title: about, style,
    type: fresh ? "button" : null, tabindex: fresh ? (current ? 0 : -1) : null,
    "aria-label": fresh ? `${about}. ${data.strings.go}` : null,
    "aria-current": current ? "step" : null,
  }, el("bdi", { class: "label" }, labelNodes(chip.label)))
  if (chip.parts.length > 1) {
    const badge = fmt(data.strings.parts, { n: chip.parts.length })
    node.append(el("span", { class: "badge" }, badge))
  }
  if (fresh) {
    const width = `${(100 * chipProbability(chip)).toFixed(1)}%`
    node.append(el("span", { class: "bar", "aria-hidden": "true" }, el("i", { style: { width } })))
  }
  return node
}

// The nodes of the flowing text. `hooks`: pick(chip), about(chip or null), expand().
export function textNodes(data, { theme, width, expanded, pending }, hooks) {
  const prompt = data.chips.filter((chip) => !chip.steps.length)
  const fold = collapse(prompt.map((chip) => chip.label), 2 * (width / LETTER))
  const [head, tail] = fold && !expanded ? fold : [prompt.length, prompt.length]
  const nodes = []
  const put = (chip) => {
    const node = chipNode(chip, data, theme)
    node.onpointerenter = node.onfocus = () => hooks.about(chip)
    node.onpointerleave = node.onblur = () => hooks.about(null)
    node.onclick = () => (chip.steps.length ? hooks.pick(chip) : hooks.about(chip))
    nodes.push(node)
  }
  prompt.slice(0, head).forEach(put)
  if (fold && !expanded) {
    const n = prompt.slice(head, tail).reduce((sum, chip) => sum + chip.parts.length, 0)
    nodes.push(moreButton(fmt(data.strings.show_all, { n: data.prompt }), "false", hooks.expand,
      fmt(data.strings.hidden, { n })))
    prompt.slice(tail).forEach(put)
  } else if (fold) nodes.push(moreButton(data.strings.show_less, "true", hooks.expand))
  data.chips.slice(prompt.length).forEach(put)
  if (pending) nodes.push(el("span", { class: "pending", title: data.strings.waiting }, "…"))
  return nodes
}

function moreButton(text, expanded, onclick, title) {
  return el("button", { class: "more", type: "button", "aria-expanded": expanded, title, onclick }, text)
}

// What the colours and shapes mean.
export function legendNode(data, theme) {
  const s = data.strings
  const stops = [0, 0.25, 0.5, 0.75, 1]
  const scale = stops.map((p) => el("span", { class: "swatch", style: ramp(p, theme) }, percent(p).replace(".0", "")))
  const mark = (kind, text) => el("span", { class: `mark mark-${kind}` },
    el("span", { class: `chip new sample ${kind}`, "aria-hidden": "true" }, "a"), text)
  const all = data.chips
  return el("div", { class: "legend" },
    el("span", { class: "scale", title: s.legend }, el("span", {}, s.legend_short), el("span", { class: "swatches" }, scale)),
    mark("current", s.legend_view),
    all.some((chip) => chip.steps[0]?.index > data.view) && mark("later", s.legend_later),
    all.some((chip) => chip.steps.some((x) => x.rule === "forced")) && mark("forced", s.legend_forced),
    all.some((chip) => chip.special) && mark("control", s.legend_control))
}

// Keep the token in view inside the text's own box, without moving the page.
export function reveal(box, node) {
  const low = node.offsetTop - box.offsetTop
  if (low < box.scrollTop) box.scrollTop = low - 8
  else if (low + node.offsetHeight > box.scrollTop + box.clientHeight) {
    box.scrollTop = low + node.offsetHeight - box.clientHeight + 8
  }
}
