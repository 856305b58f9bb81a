// Stage 2: the layers, what attention reads, and what the logit lens says.
import { el, percent } from "./dom.js"
import { reading } from "./journey_grid.js"
import { quoted } from "./journey_layout.js"
import { layerName, rich, stageHead, tok } from "./journey_parts.js"
import { layerStack, paintStack, pulseStack, showStack } from "./journey_stack.js"

const SINK = 0.3 // a share of the first token that asks for an explanation

export function computeStage(data, ui) {
  const s = data.strings
  const body = el("div", { class: "stage-body" })
  const terms = data.layers ? rich(s.compute_terms, { n: data.layers }) : s.compute_terms_none
  const head = stageHead(2, s.compute_title, terms)
  const node = el("section", { class: "stage compute", "aria-label": s.compute_title }, head, body)
  if (!data.layers) {
    body.append(el("p", { class: "table-model" }, s.no_layers))
    return { node, paint: () => {}, show: () => {}, pulse: () => {} }
  }
  const stack = layerStack(data, ui)
  const says = el("p", { class: "says" })
  body.append(stack.node, ...lensChips(data, ui), rising(data), says)
  const show = () => {
    showStack(stack)
    says.replaceChildren(...sentence(data, ui, stack))
    for (const chip of node.querySelectorAll(".lens-chip")) {
      chip.setAttribute("aria-pressed", String(Number(chip.dataset.layer) === ui.layer()))
    }
  }
  const paint = (size, root) => (paintStack(stack, size, root), show())
  return { node, paint, show, pulse: (delay) => pulseStack(stack, delay) }
}

// What the followed token reads in the layer in view; the first token's share apart.
function sentence(data, ui, stack) {
  const s = data.strings
  const [layer, reader] = [ui.layer(), ui.reader()]
  const name = el("strong", {}, layerName(s, layer))
  if (!stack.grid || !data.attention) return [name]
  const token = tok(data.lanes[reader].label)
  const out = [name, s.colon]
  const links = reading(stack.attention, stack.grid, layer, reader)
  if (!links.length) out.push(s.no_attention)
  else if (reader === 0) out.push(...rich(s.reads_itself, { token }))
  const between = links.filter(({ key }) => key !== "gap" && key > 0 && key < reader)
  if (between.length) {
    const best = between.reduce((a, b) => (b.weight > a.weight ? b : a))
    const other = tok(data.lanes[best.key].label)
    const strongest = ui.isAutomatic() && reader === data.lanes.length - 1
    const holes = { token, other, p: percent(best.weight), heads: data.heads }
    out.push(...rich(strongest ? s.reads_strongest : s.reads_most, holes))
  }
  if (reader > 0 && links[0]?.weight >= SINK) {
    const first = tok(data.lanes[0].label)
    out.push(s.sentence_join, ...rich(s.sink, { p: percent(links[0].weight), first }))
  }
  if (!ui.isAutomatic()) out.push(" ", backLink(s, ui))
  return out
}

function backLink(s, ui) {
  const how = { type: "button", class: "link", "data-key": "auto", onclick: (event) => returned(event, ui) }
  return el("button", how, s.layer_auto)
}

// The link goes away with its click; the focus stays with the layers.
function returned(event, ui) {
  const layers = event.currentTarget.closest(".stage").querySelector(".slider")
  ui.automatic()
  layers.focus({ preventScroll: true })
}

function lensChips(data, ui) {
  if (!data.lens) return []
  const s = data.strings
  const chips = quoted(data.layers, 8).map((layer) => {
    const guess = data.lens.guesses[layer]
    const same = data.lens.agrees[layer]
    return el(
      "button",
      {
        type: "button",
        class: `lens-chip${same ? " same" : ""}`,
        "data-layer": layer,
        "data-key": `lens${layer}`,
        "aria-pressed": "false",
        title: `${guess} · ${percent(data.lens.probabilities[layer])}`,
        onclick: () => ui.pick(layer),
        onpointerenter: () => ui.preview(layer),
        onpointerleave: () => ui.preview(null),
      },
      el("bdi", { class: "guess" }, guess),
      el(
        "small",
        {},
        layerName(s, layer),
        el("br"),
        percent(data.lens.probabilities[layer]),
        same ? " ✓" : "",
      ),
    )
  })
  return [el("p", { class: "lens-says" }, s.lens_says), el("div", { class: "lens-chips" }, chips)]
}

// Where the chosen token's probability grows on its way up.
function rising(data) {
  const r = data.lens?.rise
  if (!r) return el("p")
  const s = data.strings
  const hole = {
    token: tok(data.joins.label),
    layer: r.layer + 1,
    before: percent(r.before),
    after: percent(r.after),
    since: r.since === null ? "" : r.since + 1,
    final: percent(r.final),
  }
  const low = Math.max(...data.lens.chosen) < 0.01
  const parts = low ? rich(s.rise_low, hole) : rich(s.rise, hole)
  if (!low && r.since !== null && r.since !== r.layer) parts.push(s.sentence_join, ...rich(s.rise_since, hole))
  return el("p", { class: "rise" }, parts)
}
