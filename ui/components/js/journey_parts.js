// Pieces that all three stages use.
import { el } from "./dom.js"
import { pieces } from "./journey_layout.js"

// A message with its holes filled; strings that are tokens come as nodes (see tok).
export function rich(template, values) {
  const whole = (value) => (typeof value === "string" ? value.replace(" %", "\u00a0%") : value)
  return pieces(template).map((part) => (part.hole ? whole(values[part.hole] ?? "") : part))
}

// A token within a sentence: isolated, so that right-to-left text keeps to itself.
export function tok(label) {
  return el("bdi", { class: "tok", title: label }, label)
}

// kind: prompt, generated, last (the one that predicts) or joins (the one that was chosen).
export function tokenChip(token, kind) {
  const name = `chip ${kind}${token.special ? " special" : ""}`
  return el("bdi", { class: name, title: token.label }, token.label)
}

export function stageHead(number, title, terms) {
  return el(
    "header",
    { class: "stage-head" },
    el("h2", {}, el("span", { class: "badge", "aria-hidden": "true" }, number), title),
    el("p", { class: "terms" }, terms),
  )
}

export const layerName = (strings, layer) => strings.layer_n.replace("{n}", layer + 1)

// A label of at most `most` characters, for places that cannot do it by style.
export function clipped(label, most) {
  const letters = [...label]
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : label
}
