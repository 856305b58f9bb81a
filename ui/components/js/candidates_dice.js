// The dice of a step: thrown again with a button or a key, and the seed that fixes them.

import { el, fmt, svg } from "./dom.js"

const DICE_TYPING = ["input", "textarea", "select"]

// Whether a key press means "throw again": a D that nobody types into a field.
export function isReroll({ key, ctrl, meta, alt, composing }, { tag, role, editable }) {
  if (ctrl || meta || alt || composing || editable) return false
  if (DICE_TYPING.includes(tag) || ["textbox", "combobox", "spinbutton", "listbox"].includes(role)) return false
  return key === "d" || key === "D"
}

// A typed seed as it is sent, or null: only whole numbers from 0 to `most`, however large.
export function seedOf(text, most) {
  const typed = text.trim().replaceAll(/[,\u00a0\u202f ]/g, "")
  if (!/^\d{1,30}$/.test(typed)) return null
  const seed = BigInt(typed)
  return seed <= BigInt(most) ? seed.toString() : null
}

// The seed after this one; the last is followed by 0.
export function nextSeed(seed, most) {
  return seed === most ? "0" : (BigInt(seed) + 1n).toString()
}

// Where the dice went: "thrown again 2 times: u 0.412 → 0.834", or null before the first time.
export function rollsText(dice, strings) {
  if (dice.u === null || dice.roll === 0 || dice.before.length === 0) return null
  const before = dice.before.slice(-3).map((u) => u.toFixed(3))
  if (dice.roll > before.length) before.unshift("…")
  const values = { n: dice.roll.toLocaleString("en"), before: before.join(" → "), u: dice.u.toFixed(3) }
  return fmt(dice.roll === 1 ? strings.rolls_one : strings.rolls_n, values)
}

function die() {
  const dot = (cx, cy) => svg("circle", { cx, cy, r: 1.9 })
  return svg("svg", { class: "die", viewBox: "0 0 20 20", "aria-hidden": "true" },
    svg("rect", { x: 1.5, y: 1.5, width: 17, height: 17, rx: 4 }),
    dot(6, 6), dot(14, 6), dot(10, 10), dot(6, 14), dot(14, 14))
}

// `hands` = {reroll(), seed(text)}.
export function diceNode(data, hands) {
  const { strings: s, dice, rule } = data
  const thrown = dice.u !== null
  const throwAgain = el("button", {
    type: "button", class: "act", "data-key": "reroll", title: s.reroll_help, disabled: !thrown,
    "aria-keyshortcuts": "d", onclick: () => hands.reroll(),
  }, die(), thrown ? (rule === "forced" ? s.reroll_forced : s.reroll) : s.reroll_none,
  thrown && el("kbd", { "aria-hidden": "true" }, "D"))
  const rolls = rollsText(dice, s)
  return el("div", { class: "dice-row", role: "group", "aria-label": s.dice }, throwAgain,
    rolls && el("span", { class: "rolls" }, rolls), seedNode(data, hands))
}

function seedNode({ strings: s, dice }, hands) {
  const problem = el("span", { class: "problem", role: "status" })
  const field = el("input", {
    type: "text", class: "seed", inputmode: "numeric", autocomplete: "off", spellcheck: "false",
    "data-key": "seed", "aria-label": s.seed, title: fmt(s.seed_help, { most: dice.most }),
    style: { width: `${Math.max(4, dice.seed.length + 2)}ch` },
  })
  field.value = dice.seed
  field.oninput = () => { field.style.width = `${Math.max(4, field.value.length + 2)}ch` }
  field.onchange = () => {
    const seed = seedOf(field.value, dice.most)
    field.setAttribute("aria-invalid", String(seed === null))
    problem.textContent = seed === null ? fmt(s.seed_bad, { most: dice.most }) : ""
    if (seed !== null && seed !== dice.seed) hands.seed(seed)
  }
  field.onkeydown = (event) => {
    if (event.key !== "Escape") return
    field.value = dice.seed
    field.onchange()
  }
  const next = nextSeed(dice.seed, dice.most)
  return el("span", { class: "seeds" }, el("label", {}, s.seed, " ", field),
    el("button", {
      type: "button", class: "act", "data-key": "new_seed", title: fmt(s.seed_new_help, { seed: next }),
      onclick: () => hands.seed(next),
    }, s.seed_new), problem)
}
