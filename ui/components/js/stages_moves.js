// What a stage that looks at the text did to the likeliest tokens it touched: score before → after.
import { el } from "./dom.js"
import { stagesNumber } from "./stages.js"
import { cardAttribute, cardText } from "./stages_cards.js"

const MOVES_SHOWN = 4

export function movesOf({ words, labelOf }) {
  const rows = Array.from({ length: MOVES_SHOWN }, () => {
    const parts = { label: el("bdi", { class: "label" }), before: el("span"), after: el("strong") }
    return { ...parts, node: el("li", null, parts.label, el("span", { class: "scores-of" }, parts.before, " → ", parts.after)) }
  })
  const node = el("ul", { class: "touched", "aria-label": words.moved_scores }, rows.map((row) => row.node))
  function update(_before, step) {
    rows.forEach((row, i) => {
      const move = step.moved[i]
      row.node.hidden = !move
      if (!move) return
      const label = labelOf(move.id)
      cardText(row.label, label)
      cardAttribute(row.label, "title", label)
      cardText(row.before, stagesNumber(move.before))
      cardText(row.after, stagesNumber(move.after))
      cardAttribute(row.node, "class", move.after > move.before ? "up" : "down")
    })
  }
  return { node, update }
}
