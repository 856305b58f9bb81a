import { el, fmt, themeOf } from "./dom.js"
import { walk } from "./walk.js"
import { cardNode } from "./tokens_card.js"

const views = new WeakMap()
const BLANKS = /[␣↵⇥]+/g
const STATS = ["characters", "points", "bytes", "tokens", "control", "per_character"]

// The label with its marks for blanks set apart, so that they can be drawn softer.
function marked(label) {
  const out = []
  let last = 0
  for (const match of label.matchAll(BLANKS)) {
    out.push(label.slice(last, match.index), el("span", { class: "blank" }, match[0]))
    last = match.index + match[0].length
  }
  return [...out, label.slice(last)].filter((piece) => piece !== "")
}

class Tokens {
  constructor(root) {
    this.root = root
    this.selected = -1
    this.serial = 0
    root.onkeydown = (event) => { walk(event, [...root.querySelectorAll(".flow .token")]) } // (false would cancel the key)
  }

  // A choice made here counts until the page has heard of it.
  update(data, emit) {
    const { selected, heard, ...content } = data
    const said = JSON.stringify(content)
    const same = said === this.said && this.root.firstChild
    Object.assign(this, { data, emit, said })
    if (!this.serial || heard === this.serial) this.selected = selected
    if (same) this.mark()
    else this.draw()
  }

  pick(position) {
    this.selected = position
    this.mark()
    this.emit({ at: position, serial: ++this.serial })
  }

  draw() {
    const { data, root } = this
    const s = data.strings
    const focus = root.getRootNode().activeElement?.dataset?.position
    this.card = el("div", { class: "side" })
    this.flow = el("div", { class: "flow", role: "group", "aria-label": s.flow }, this.chips())
    root.replaceChildren(
      el("div", { class: "main" }, this.flow, this.legend(), this.stats()), this.card)
    this.mark()
    if (focus !== undefined) root.querySelector(`[data-position="${Number(focus)}"]`)?.focus({ preventScroll: true })
  }

  chips() {
    const { gap, strings: s } = this.data
    const nodes = []
    for (const chip of this.data.chips) {
      if (gap && chip.parts[0].position >= gap.at && !nodes.gap) {
        nodes.push(el("span", { class: "gap" }, fmt(s.gap, { n: gap.hidden.toLocaleString("en") })))
        nodes.gap = true
      }
      nodes.push(this.chip(chip))
    }
    return nodes
  }

  chip(chip) {
    if (chip.parts.length === 1) return this.token(chip.parts[0])
    const s = this.data.strings
    return el("span", { class: "together", role: "group", "aria-label": fmt(s.parts, { n: chip.parts.length, char: chip.label }) },
      el("bdi", { class: "whole", title: fmt(s.parts, { n: chip.parts.length, char: chip.label }) }, chip.label),
      chip.parts.map((part) => this.token(part)))
  }

  token(part) {
    const s = this.data.strings
    const classes = ["token", part.special && "control", part.generated && "made"].filter(Boolean).join(" ")
    return el("button", {
      type: "button", class: classes, tabindex: -1, "data-position": part.position,
      title: fmt(s.token_title, { token: part.label, id: part.id, position: part.position }),
      "aria-label": fmt(s.choose, { token: part.label, position: part.position }),
      onclick: () => this.pick(part.position),
    }, el("bdi", { class: "label" }, marked(part.label)), el("small", { class: "index" }, part.position))
  }

  mark() {
    const tokens = [...this.flow.querySelectorAll(".token")]
    let current = null
    for (const token of tokens) {
      const here = Number(token.dataset.position) === this.selected
      if (here) current = token
      token.toggleAttribute("data-current", here)
      token.setAttribute("aria-pressed", String(here))
      token.tabIndex = -1
    }
    const stop = current ?? tokens[0]
    if (stop) stop.tabIndex = 0
    if (current) this.reveal(current)
    const inside = this.card.contains(this.root.getRootNode().activeElement)
    this.card.replaceChildren(cardNode(this.data, this.selected, (position) => this.pick(position)))
    if (inside) this.card.querySelector(".jump[aria-current]")?.focus({ preventScroll: true })
  }

  // Keep the chosen token inside the text's own box, without moving the page.
  reveal(node) {
    const box = this.flow
    const low = node.offsetTop - box.offsetTop
    if (low < box.scrollTop) box.scrollTop = low - 12
    else if (low + node.offsetHeight > box.scrollTop + box.clientHeight) {
      box.scrollTop = low + node.offsetHeight - box.clientHeight + 12
    }
  }

  legend() {
    const s = this.data.strings
    const all = this.data.chips.flatMap((chip) => chip.parts)
    const item = (kind, text) => el("span", {}, el("span", { class: `token sample ${kind}`, "aria-hidden": "true" }, "a"), text)
    return el("p", { class: "legend" }, item("", s.source_prompt),
      all.some((p) => p.generated) && item("made", s.source_generated),
      all.some((p) => p.special) && item("control", s.kind_control),
      this.data.chips.some((chip) => chip.parts.length > 1) &&
        el("span", {}, el("span", { class: "together sample", "aria-hidden": "true" }), s.legend_together))
  }

  stats() {
    const { stats, strings: s } = this.data
    const value = (name, x) => (x === null ? "–" : name === "per_character" ? x.toFixed(2) : x.toLocaleString("en"))
    const used = STATS.filter((name) => name !== "control" || stats.some((row) => row.control))
    return el("div", { class: "stats" },
      el("table", {},
        el("caption", { class: "sr-only" }, s.stats),
        el("thead", {}, el("tr", {}, el("td", {}),
          stats.map((row) => el("th", { scope: "col", class: "number" }, s[`of_${row.of}`])))),
        el("tbody", {}, used.map((name) => el("tr", { class: name === "tokens" ? "tokens" : null },
          el("th", { scope: "row", title: s[`stat_${name}_help`] }, s[`stat_${name}`]),
          stats.map((row) => el("td", { class: "number" }, value(name, row[name]))))))))
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  if (!views.has(root)) views.set(root, new Tokens(root))
  views.get(root).update(data, (event) => setTriggerValue("action", event))
}
