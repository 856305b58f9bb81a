import { el, fmt, themeOf } from "./dom.js"
import { EmbeddingMap } from "./embeddings_map.js"
import { rowChips, rowNeighbours, rowRoad, rowStrip } from "./embeddings_row.js"

const embeddingViews = new WeakMap()

class EmbeddingView {
  constructor(root) {
    this.root = root
    this.map = new EmbeddingMap((position) => this.look(position))
    this.width = 0
    this.observer = new ResizeObserver(() => {
      if (Math.abs(root.clientWidth - this.width) < 4 || !this.data) return
      this.width = root.clientWidth
      this.paint()
    })
    this.observer.observe(root)
  }

  update({ data, setTriggerValue }) {
    this.data = data
    this.emit = setTriggerValue
    const s = data.strings
    const focused = Boolean(this.root.querySelector(".tokens :focus"))
    this.strip = rowStrip(data)
    this.root.removeAttribute("aria-busy")
    this.root.replaceChildren(
      el("section", { class: "box" },
        el("h2", {}, s.lookup, el("span", { class: "dim" }, s.lookup_text)),
        rowChips(data, (position) => this.look(position)),
        rowRoad(data),
        this.strip.node,
        el("p", { class: "enter" }, data.entering)),
      el("div", { class: "pair" },
        el("section", { class: "box near" },
          el("h2", {}, fmt(s.near, { token: data.tokens[data.at].label }), el("span", { class: "dim" }, s.near_text)),
          rowNeighbours(data)),
        el("section", { class: "box" },
          el("h2", {}, s.map, el("span", { class: "dim" }, s.map_text)),
          this.map.node)))
    this.map.update(data)
    this.paint()
    const box = this.root.querySelector(".tokens")
    const chosen = box.querySelector("[aria-pressed=true]")
    if (chosen && this.shown !== data.at) box.scrollTop = chosen.offsetTop - box.offsetTop - box.clientHeight / 2
    else box.scrollTop = this.scrolled ?? 0
    box.onscroll = () => { this.scrolled = box.scrollTop }
    this.shown = data.at
    if (focused) this.root.querySelector(".token[aria-pressed=true]")?.focus({ preventScroll: true })
  }

  look(position) {
    if (position === this.data.at) return
    this.root.setAttribute("aria-busy", "true")
    this.emit("action", { do: "look", at: position })
  }

  paint() {
    this.width = this.root.clientWidth
    this.strip.paint(this.root.dataset.theme)
    this.map.draw()
  }
}

export default function (component) {
  const { data, parentElement } = component
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  if (!embeddingViews.has(root)) embeddingViews.set(root, new EmbeddingView(root))
  embeddingViews.get(root).update(component)
}
