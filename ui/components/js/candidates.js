import { el, fmt, themeOf } from "./dom.js"
import { activeStages, stagesOf, tableNode } from "./candidates_table.js"
import { walk } from "./walk.js"
import { barNode } from "./candidates_bar.js"
import { diceNode, isReroll } from "./candidates_dice.js"

const tables = new WeakMap()

class Candidates {
  constructor(root) {
    this.root = root
    this.size = 20
    this.width = root.clientWidth
    this.observer = new ResizeObserver(() => {
      if (Math.abs(root.clientWidth - this.width) < 8) return
      this.width = root.clientWidth
      this.draw()
    })
    this.observer.observe(root)
    root.onkeydown = (event) => { this.walked = walk(event, this.picks()) }
    this.said = el("p", { class: "sr-only", "aria-live": "polite" })
    const key = (event) => this.key(event)
    document.addEventListener("keydown", key)
    this.unlisten = () => {
      document.removeEventListener("keydown", key)
      this.observer.disconnect()
    }
  }

  update(data, emit) {
    const thrown = this.data && data.dice && `${data.step}/${data.dice.roll}/${data.dice.seed}`
    if (thrown && this.thrown !== thrown) this.said.textContent = data.why
    this.thrown = data.dice && `${data.step}/${data.dice.roll}/${data.dice.seed}`
    Object.assign(this, { data, emit })
    this.draw()
  }

  key(event) {
    const node = event.composedPath()[0]
    const pressed = { key: event.key, ctrl: event.ctrlKey, meta: event.metaKey, alt: event.altKey, composing: event.isComposing }
    const there = { tag: (node.tagName ?? "").toLowerCase(), role: node.getAttribute?.("role"), editable: node.isContentEditable }
    if (event.defaultPrevented || event.repeat || !isReroll(pressed, there)) return
    event.preventDefault()
    this.reroll()
  }

  reroll() {
    if (this.data.dice.u === null || this.root.getAttribute("aria-busy") === "true") return
    this.root.setAttribute("aria-busy", "true")
    this.emit({ do: "reroll", step: this.data.step })
  }

  seed(seed) {
    this.root.setAttribute("aria-busy", "true")
    this.emit({ do: "seed", seed })
  }

  force(id) {
    this.root.setAttribute("aria-busy", "true")
    this.emit({ do: "force", step: this.data.step, id })
  }

  draw() {
    const { data, root } = this
    const s = data.strings
    const held = root.getRootNode().activeElement
    const focused = root.contains(held)
    const key = focused && held.dataset.key
    const size = data.sizes.includes(this.size) ? this.size : data.sizes.at(-1)
    const force = (id) => this.force(id)
    root.removeAttribute("aria-busy")
    const names = (stages) => stages.map((x) => x.label).join(" · ")
    const off = names(data.stages.filter((x) => x.parameter === null || !x.on))
    const idle = names(stagesOf(data, size).idle)
    root.replaceChildren(
      el("section", { class: "box" },
        el("h2", {}, s.bar, el("span", { class: "dim" }, s.bar_help)),
        barNode(data, (this.width || 600) - 30, force),
        whyNode(data),
        data.dice && diceNode(data, { reroll: () => this.reroll(), seed: (seed) => this.seed(seed) })),
      el("section", { class: "box" },
        el("div", { class: "top" }, el("h2", {}, fmt(s.candidates, { step: data.step + 1 })), this.sizes(size)),
        el("p", { class: "dim" }, s.hint, off && ` ${fmt(s.off_stages, { names: off })}`),
        idle && el("p", { class: "dim" }, fmt(s.idle_stages, { names: idle })),
        tableNode(data, size, force)), this.said)
    if (key) root.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true })
    const picks = this.picks()
    const first = picks.find((x) => x.getAttribute("aria-current")) ?? picks[0]
    if (first) first.tabIndex = 0
    if (focused && this.walked) first?.focus({ preventScroll: true })
    root.classList.toggle("plain", activeStages(data.stages).length === 0)
  }

  sizes(size) {
    const s = this.data.strings
    if (this.data.sizes.length < 2) return null
    return el("div", { class: "sizes", role: "group", "aria-label": s.show },
      this.data.sizes.map((n) => el("button", {
        type: "button", "aria-pressed": String(n === size), title: fmt(s.show_n, { n }),
        onclick: () => { this.size = n; this.walked = false; this.draw(); this.pressed(n) },
      }, n)))
  }

  pressed(n) {
    const buttons = [...this.root.querySelectorAll(".sizes button")]
    buttons.find((button) => button.textContent === String(n))?.focus()
  }

  picks() {
    return [...this.root.querySelectorAll(".pick")]
  }
}

// The question in bold, once: the sentences begin with it where it is "why not the top token?"
function whyNode({ why, question }) {
  const rest = why.startsWith(question) ? why.slice(question.length).trimStart() : why
  return el("p", { class: "why" }, el("b", {}, `${question} `), rest)
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  if (!tables.has(root)) tables.set(root, new Candidates(root))
  const table = tables.get(root)
  table.update(data, (event) => setTriggerValue("action", event))
  return () => {
    table.unlisten()
    tables.delete(root)
  }
}
