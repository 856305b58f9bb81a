import { el, keepFocus, themeOf } from "./dom.js"
import { asList, chainOf, firstSize, layoutOf, moveTo, nameOf, nodeOf, nodesOf, surviving } from "./beam_layout.js"
import { treeNode } from "./beam_tree.js"
import { cardNode } from "./beam_card.js"
import { legendNode, listNode, playerNode, rankingNode, summaryOf } from "./beam_parts.js"

const TICK = 900
const REST = 90
// Pixels: from which width on the card stands beside the tree, what it takes there, the edges.
const SIDE = 940
const CARD = 342
const EDGE = 26

class Beam {
  constructor(root) {
    this.root = root
    this.open = new Set()
    this.serial = 0
    this.observer = new ResizeObserver(() => {
      if (this.data && Math.abs(root.clientWidth - this.width) >= 8) this.redraw()
    })
    this.observer.observe(root)
  }

  update(data, emit) {
    const other = !this.data || this.data.id !== data.id || this.data.steps.length !== data.steps.length
    Object.assign(this, { data: { ...data, specials: new Set(data.special) }, emit })
    if (other) {
      this.pause()
      this.open = new Set()
      this.shown = data.steps.length
      const rows = data.steps.map((step) => step.candidates.filter((c) => c.fate !== "lost").length)
      const side = this.root.clientWidth >= SIDE ? CARD : 0
      this.size = firstSize(Math.max(1, ...rows), data.steps.length, this.root.clientWidth - side - EDGE)
    }
    // An answer to an earlier click must not undo a later one.
    if (other || this.serial === 0 || data.heard === this.serial) this.node = data.node ? nameOf(...data.node) : null
    this.waiting = this.node !== null && !(data.node && nameOf(...data.node) === this.node)
    this.redraw()
    if (other) this.reveal(this.node)
  }

  best() {
    return this.data.ranking.length ? chainOf(this.data, this.data.ranking[0].node) : []
  }

  redraw() {
    keepFocus(this.root, () => this.draw())
  }

  draw() {
    const { data, root } = this
    this.width = root.clientWidth
    this.list = asList(this.width)
    root.dataset.list = this.list ? "yes" : "no"
    root.dataset.side = this.width >= SIDE ? "yes" : "no"
    const kept = root.querySelector(".scroller")
    const scroll = kept ? [kept.scrollLeft, kept.scrollTop] : [0, 0]
    const greedy = new Set((data.greedy?.path ?? []).map((node) => nameOf(...node)))
    const always = new Set([...greedy, ...(this.node ? [this.node] : [])])
    this.layout = layoutOf(data, { shown: this.shown, open: this.open, always, size: this.size })
    this.alive = surviving(data, this.shown)
    const all = nodesOf(this.layout)
    if (!all.has(this.cursor)) this.cursor = all.has(this.node) ? this.node : this.layout.columns[0]?.nodes[0]?.name
    this.view = {
      layout: this.layout, shown: this.shown, open: this.open, alive: this.alive, greedy, list: this.list,
      best: new Set(this.shown === data.steps.length ? this.best() : []), path: this.path(this.node),
      selected: this.node, cursor: this.cursor, size: this.size, playing: Boolean(this.timer),
      allOpen: data.steps.length > 0 && this.open.size === data.steps.length,
    }
    const hooks = this.hooks()
    this.card = el("div", { class: "card-place" })
    this.scroller = this.list ? listNode(data, this.view, hooks)
      : el("div", { class: "scroller", onkeydown: (event) => this.key(event) }, treeNode(data, this.view, hooks))
    root.replaceChildren(
      playerNode(data, this.view, hooks),
      el("p", { class: "summary", "aria-live": "polite" }, summaryOf(data, this.shown).join(data.strings.sentence_join)),
      el("div", { class: "board" }, this.scroller, this.card),
      legendNode(data), rankingNode(data, this.view, hooks))
    this.tell(this.node)
    if (!this.list) Object.assign(this.scroller, { scrollLeft: scroll[0], scrollTop: scroll[1] })
  }

  hooks() {
    this.known ??= {
      select: (name) => this.select(name),
      point: (name, focus) => this.point(name, focus),
      toggle: (index) => { this.open.has(index) ? this.open.delete(index) : this.open.add(index); this.redraw() },
      to: (shown) => { this.pause(); this.to(shown) },
      play: () => (this.timer ? this.halt() : this.play()),
      zoom: (by) => { this.size = Math.min(2, Math.max(0, this.size + by)); this.redraw(); this.reveal(this.node ?? this.cursor) },
      openAll: () => {
        this.open = this.view.allOpen ? new Set() : new Set(this.data.steps.keys())
        this.redraw()
      },
      carryOn: (node) => this.emit({ do: "continue", step: node[0], place: node[1] }),
    }
    return this.known
  }

  path(name) {
    return new Set(name ? chainOf(this.data, nodeOf(name)) : [])
  }

  // Show a node's card and its way from the prompt, without choosing it.
  point(name, focus = false) {
    if (focus) {
      this.cursor = name
      for (const node of this.root.querySelectorAll(".node")) node.tabIndex = node.dataset.key === name ? 0 : -1
    }
    clearTimeout(this.rest)
    this.rest = setTimeout(() => {
      const shown = name ?? this.node
      const path = this.path(shown)
      for (const node of this.root.querySelectorAll(".node")) node.classList.toggle("on-path", path.has(node.dataset.key))
      for (const row of this.root.querySelectorAll(".ranking tr")) row.classList.toggle("pointed", row.querySelector("[data-key]")?.dataset.key === `rank-${name}`)
      this.tell(shown)
    }, focus ? 0 : REST)
  }

  // Without a node in view the card is the winner's.
  tell(found) {
    const name = found ?? (this.shown === this.data.steps.length ? this.best().at(-1) : null) ?? null
    const hooks = { ...this.hooks(), waiting: this.waiting && name === this.node }
    const card = cardNode(this.data, name ? nodeOf(name) : null, this.alive, { ...hooks, hint: !this.node })
    keepFocus(this.root, () => this.card.replaceChildren(card))
  }

  select(name) {
    clearTimeout(this.rest)
    const again = name === this.node
    this.node = again ? null : name
    if (!again) {
      const [step] = nodeOf(name)
      if (step >= this.shown) this.shown = step + 1
    }
    this.waiting = this.node !== null
    this.cursor = name
    this.redraw()
    this.reveal(name)
    this.serial += 1
    const [step, place] = this.node ? nodeOf(this.node) : [-1, -1]
    this.emit({ do: "node", step, place, serial: this.serial })
  }

  key(event) {
    const node = event.target.closest(".node")
    if (!node || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return
    const next = moveTo(event.key, node.dataset.key, this.layout, new Set(this.best()))
    const arrows = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End"]
    if (!arrows.includes(event.key)) return
    // The player of the page listens to the same keys.
    event.preventDefault()
    event.stopPropagation()
    if (next) {
      this.root.querySelector(`.node[data-key="${next}"]`)?.focus({ preventScroll: true })
      this.reveal(next)
    }
  }

  to(shown) {
    this.shown = Math.min(this.data.steps.length, Math.max(1, shown))
    this.redraw()
    const column = this.layout.columns[this.shown - 1]
    if (column && !this.list) this.scroller.scrollLeft = Math.max(0, column.x - this.scroller.clientWidth / 2)
  }

  play() {
    const from = this.shown >= this.data.steps.length ? 1 : this.shown + 1
    this.timer = setInterval(() => {
      if (this.shown >= this.data.steps.length) this.halt()
      else this.to(this.shown + 1)
    }, TICK)
    this.to(from)
  }

  pause() {
    clearInterval(this.timer)
    this.timer = null
  }

  halt() {
    this.pause()
    this.redraw()
  }

  // Scroll the tree's own box, never the page.
  reveal(name) {
    const found = name && !this.list ? nodesOf(this.layout).get(name) : null
    if (!found) return
    const box = this.scroller
    const { sizes } = this.layout
    if (found.x < box.scrollLeft + 8 || found.x + sizes.width > box.scrollLeft + box.clientWidth - 8) {
      box.scrollLeft = Math.max(0, found.x - box.clientWidth / 2)
    }
    if (found.y < box.scrollTop || found.y + sizes.height > box.scrollTop + box.clientHeight) {
      box.scrollTop = Math.max(0, found.y - box.clientHeight / 2)
    }
  }

  close() {
    this.pause()
    clearTimeout(this.rest)
    this.observer.disconnect()
  }
}

const beams = new WeakMap()

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  if (!beams.has(root)) beams.set(root, new Beam(root))
  beams.get(root).update(data, (event) => setTriggerValue("action", event))
  return () => {
    beams.get(root)?.close()
    beams.delete(root)
  }
}
