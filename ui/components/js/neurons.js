// The most active neurons of a layer: activation, parts of the gate, and what each writes.
import { el, fmt, themeOf } from "./dom.js"

const FEW = 3 // as in neurons.css

const number = (x) => (Math.abs(x) >= 1000 ? x.toFixed(0) : Math.abs(x) >= 100 ? x.toFixed(1) : x.toFixed(2)).replace("-", "−")

// A bar from the middle: to the right for positive values, to the left for negative ones.
function signedBar(value, largest) {
  const share = largest > 0 ? Math.min(1, Math.abs(value) / largest) * 50 : 0
  const style = { width: `${share}%`, left: value < 0 ? `${50 - share}%` : "50%" }
  return el("span", { class: "signed", "aria-hidden": "true" }, el("i", { class: value < 0 ? "minus" : "plus", style }))
}

function tokens(list, kind, name) {
  return el("ul", { class: `tokens ${kind}`, "aria-label": name }, list.map(({ label, score }) =>
    el("li", {}, el("bdi", { title: `${label}  ${score > 0 ? "+" : ""}${number(score)}` }, label))))
}

function card(data, neuron) {
  const s = data.strings
  const long = data.longest > 0 ? (100 * neuron.size) / data.longest : 0
  return el("li", { class: "neuron", "data-index": neuron.index },
    el("div", { class: "id" }, el("b", {}, fmt(s.neuron, { n: neuron.index }))),
    el("div", { class: "act" },
      el("span", { class: "head" }, s.activation), signedBar(neuron.value, data.largest), el("b", { class: "num" }, number(neuron.value)),
      data.gated ? el("small", { class: "num" }, fmt(s.gate_up, { gate: number(neuron.gate), up: number(neuron.up) })) : null),
    el("div", { class: "size" },
      el("span", { class: "head" }, s.contribution),
      el("span", { class: "whole", "aria-hidden": "true" }, el("i", { style: { width: `${long}%` } })),
      el("b", { class: "num" }, number(neuron.size)),
      el("small", { class: "num" }, `${number(Math.abs(neuron.value))} × ${number(neuron.column)}`)),
    el("div", { class: "says" }, el("span", { class: "head" }, s.promotes), tokens(neuron.promotes, "up", s.promotes)),
    el("div", { class: "says" }, el("span", { class: "head" }, s.suppresses), tokens(neuron.suppresses, "down", s.suppresses)))
}

// Where the table becomes a list of cards (on a phone), the first few stand for all until asked.
function unfold(root, data) {
  const s = data.strings
  const button = el("button", { type: "button", class: "unfold", onclick: () => {
    root.dataset.open = root.dataset.open === "true" ? "false" : "true"
    name()
  } })
  const name = () => {
    const open = root.dataset.open === "true"
    button.setAttribute("aria-expanded", String(open))
    button.textContent = open ? s.neurons_fewer : fmt(s.neurons_all, { n: data.neurons.length })
  }
  name()
  return data.neurons.length > FEW ? button : null
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  const s = data.strings
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  root.dataset.layer = data.layer
  root.replaceChildren(
    el("div", { class: "row headings", "aria-hidden": "true" },
      [s.neuron_head, s.activation, s.contribution, s.promotes, s.suppresses].map((name) => el("span", {}, name))),
    el("ol", { class: "neurons", "aria-label": s.neurons_title }, data.neurons.map((neuron) => card(data, neuron))),
    ...[unfold(root, data)].filter(Boolean))
}
