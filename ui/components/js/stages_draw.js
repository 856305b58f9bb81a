// The draw bar: the tokens that are left, each as wide as its probability, and the needle at u.
import { el, fmt, percent } from "./dom.js"
import { stagesBar } from "./stages.js"
import { cardAttribute, cardText } from "./stages_cards.js"

const DRAW_MOST = 48
const DRAW_LEAST = 0.002

export function drawBarOf(words, labelOf, language) {
  const track = el("div", { class: "track" })
  const needle = el("div", { class: "needle", "aria-hidden": "true" }, el("span", null, words.u))
  const bar = el("div", { class: "drawbar", role: "img" }, track, needle)
  const sentence = el("p", { class: "sentence" })
  const pieces = []
  const node = el("div", { class: "draw" }, el("h2", null, words.draw_plain, el("small", null, words.draw_term)), bar, sentence)

  function piece(i) {
    while (pieces.length <= i) {
      const made = el("div", { class: "piece" }, el("bdi"))
      pieces.push(made)
      track.append(made)
    }
    return pieces[i]
  }

  function update(outcome, u) {
    const parts = stagesBar(outcome, DRAW_MOST, DRAW_LEAST)
    parts.forEach((part, i) => {
      const box = piece(i)
      const width = part.high - part.low
      box.hidden = false
      box.style.left = `${100 * part.low}%`
      box.style.width = `${100 * width}%`
      const rest = part.id === null
      const name = rest ? fmt(words.draw_rest, { n: part.count.toLocaleString(language) }) : labelOf(part.id)
      cardText(box.firstChild, width > 0.035 ? name : "")
      cardAttribute(box, "title", `${name}: ${percent(width)}`)
      // Among all the rest the needle alone marks the chosen one.
      const chosen = part.id === outcome.chosen
      cardAttribute(box, "class", `piece${rest ? " rest" : ""}${chosen ? " chosen" : ""}`)
    })
    for (let i = parts.length; i < pieces.length; i++) pieces[i].hidden = true
    needle.hidden = outcome.greedy
    if (!outcome.greedy) needle.style.left = `${100 * u}%`
    const text = drawSentence(words, outcome, u, labelOf)
    cardText(sentence, text)
    cardAttribute(bar, "aria-label", `${words.draw_bar} ${text}`)
  }
  return { node, update, sentence: () => sentence.textContent }
}

function drawSentence(words, outcome, u, labelOf) {
  // Isolated, so that a right-to-left token does not turn the sentence around.
  const [token, drawn] = [outcome.chosen, outcome.drawn].map((id) => `\u2068${labelOf(id)}\u2069`)
  if (outcome.rule === "forced") {
    return outcome.greedy
      ? fmt(words.draw_forced_greedy, { token, drawn })
      : fmt(words.draw_forced, { token, drawn, u: u.toFixed(4) })
  }
  if (outcome.greedy) return fmt(words.draw_greedy, { token })
  const [low, high] = outcome.bar
  return fmt(words.draw_sample, { token, u: u.toFixed(4), low: low.toFixed(4), high: high.toFixed(4) })
}
