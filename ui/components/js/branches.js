import { el, fmt, themeOf } from "./dom.js"
import { listNode, moved, namesOf, ticked } from "./branches_list.js"
import { treeNode } from "./branches_tree.js"
import { walk } from "./walk.js"

const forests = new WeakMap()

class Branches {
  constructor(root) {
    this.root = root
    this.marks = new Set()
    root.onkeydown = (event) => {
      // Only of the tree: the fields of the list need their own keys.
      this.walked = event.target.matches?.(".part") && walk(event, this.places())
    }
  }

  update(data, emit) {
    const names = namesOf(data.paths)
    if (moved(this.names ?? [], names)) this.marks.clear()
    this.names = names
    this.sure = false
    Object.assign(this, { data, emit })
    this.draw()
  }

  send(event) {
    this.root.setAttribute("aria-busy", "true")
    this.emit(event)
  }

  go(lane, step) {
    if (lane.current) this.send({ do: "goto", step })
    else this.send({ do: "open", branch: lane.index, step })
  }

  tick(index) {
    if (!this.marks.delete(index)) this.marks.add(index)
    this.draw()
  }

  dropAll() {
    if (this.sure) this.send({ do: "drop_all" })
    this.sure = !this.sure
    this.draw()
  }

  places() {
    return [...this.root.querySelectorAll("button.part")]
  }

  draw() {
    const { data, root } = this
    const held = root.getRootNode().activeElement
    const key = root.contains(held) ? held.dataset.key : undefined
    root.removeAttribute("aria-busy")
    const hands = {
      go: (lane, step) => this.go(lane, step), tick: (index) => this.tick(index),
      keep: () => this.send({ do: "keep" }), drop: (branch) => this.send({ do: "drop", branch }),
      rename: (branch, name) => this.send({ do: "rename", branch, name }),
      open: (path) => this.send({ do: "open", branch: path.index, step: Math.max(0, (path.parts ?? 1) - 1) }),
    }
    const alone = data.paths.length < 2
    root.replaceChildren(...[alone ? null : treeNode(data, hands), listNode(data, this.marks, hands), this.footer()].filter(Boolean))
    const places = this.places()
    const first = places.find((node) => node.getAttribute("aria-current")) ?? places[0]
    if (first) first.tabIndex = 0
    if (key) root.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true })
    else if (this.walked) first?.focus({ preventScroll: true })
  }

  footer() {
    const { data } = this
    const s = data.strings
    const kept = data.paths.filter((path) => path.index !== null)
    if (kept.length === 0) return null
    const chosen = ticked(data.paths, this.marks)
    const fits = data.paths.find((path) => path.current).comparable
    return el("div", { class: "foot" },
      data.paths.length > 1 && el("button", {
        type: "button", class: "act", "data-key": "compare", title: s.branch_compare_help, disabled: chosen.length === 0 || !fits,
        onclick: () => this.send({ do: "compare", branches: chosen }),
      }, chosen.length ? fmt(s.branch_compare_n, { n: chosen.length }) : s.branch_compare),
      el("button", { type: "button", class: this.sure ? "act sure" : "act", "data-key": "drop_all", onclick: () => this.dropAll() },
        this.sure ? fmt(s.branch_drop_sure, { n: kept.length }) : s.branch_drop_all))
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  if (!forests.has(root)) forests.set(root, new Branches(root))
  forests.get(root).update(data, (event) => setTriggerValue("action", event))
  return () => forests.delete(root)
}
