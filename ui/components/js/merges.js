import { el, fmt, themeOf } from "./dom.js"
import { walk } from "./walk.js"
import { latticeNode, logNode, pairsNode, rowNode, sentence } from "./merges_parts.js"
import { MergesPlayer } from "./merges_player.js"

const views = new WeakMap()

class Merges {
  constructor(root) {
    this.root = root
    root.onkeydown = (event) => { walk(event, [...root.querySelectorAll("button.word")]) } // (false would cancel the key)
  }

  update(data, emit) {
    const same = this.said === JSON.stringify(data)
    Object.assign(this, { data, emit, said: JSON.stringify(data) })
    if (!same || !this.root.firstChild) this.draw()
  }

  draw() {
    const { data, root } = this
    const s = data.strings
    const focus = root.getRootNode().activeElement?.dataset?.at
    this.player?.stop()
    this.player = null
    root.replaceChildren(
      this.stage(1, s.stage_text, this.textNode(data.text)),
      this.stage(2, s.stage_normal, this.normalNode()),
      this.stage(3, s.stage_words, this.wordsNode()),
      this.stage(4, data.table === "unigram" ? s.stage_lattice : s.stage_merges, this.mergesNode()))
    if (focus !== undefined) root.querySelector("button.word[aria-current]")?.focus({ preventScroll: true })
  }

  stage(number, title, ...content) {
    return el("section", { class: `stage stage-${number}` },
      el("h2", {}, el("span", { class: "step", "aria-hidden": "true" }, number), title), content)
  }

  textNode({ label, more }) {
    return el("p", { class: "text" }, el("bdi", {}, label),
      more > 0 && el("small", { class: "dim" }, ` ${fmt(this.data.strings.more, { n: more.toLocaleString("en") })}`))
  }

  steps(list) {
    return el("ul", { class: "steps" }, list.map((step) => el("li", {}, el("code", {}, step.name),
      step.about && el("span", {}, ` ${step.about}`))))
  }

  normalNode() {
    const { data } = this
    const s = data.strings
    if (!data.normalizer.length) return el("p", { class: "dim" }, s.no_normalizer)
    return [this.steps(data.normalizer), data.normal ? this.textNode(data.normal) : el("p", { class: "dim" }, s.same_normal)]
  }

  wordsNode() {
    const { data } = this
    const s = data.strings
    const current = data.words.findIndex((word) => word.chosen)
    return [
      data.cutter.length ? this.steps(data.cutter) : el("p", { class: "dim" }, s.no_cutter),
      data.pieces && el("p", { class: "dim" }, s.pieces),
      el("p", { class: "dim" }, s.choose_word,
        data.count > data.words.length && ` ${fmt(s.words_shown, { n: data.words.length, all: data.count.toLocaleString("en") })}`),
      el("div", { class: "words", role: "group", "aria-label": s.stage_words },
        data.opening.map((label) => el("span", { class: "word own", title: s.why_opening }, el("bdi", {}, label))),
        data.words.map((word, i) => el("button", {
          type: "button", class: word.added ? "word added" : "word", "data-at": word.at,
          tabindex: i === Math.max(current, 0) ? 0 : -1, "aria-current": word.chosen ? "true" : null,
          title: fmt(word.added ? s.word_added : s.word_title, { n: word.tokens }),
          onclick: () => this.emit({ at: word.at }),
        }, el("bdi", {}, word.label), word.tokens > 1 && el("small", { "aria-hidden": "true" }, word.tokens)))),
    ]
  }

  mergesNode() {
    const { data } = this
    const s = data.strings
    const word = data.chosen
    const about = data.table === "bpe" && el("p", { class: "dim" }, fmt(s.about_merges, { n: data.rules.toLocaleString("en") }))
    const head = word.label !== undefined && el("p", { class: "which" }, fmt(word.positions.includes("–") ? s.the_word_several : s.the_word, { positions: word.positions }),
      el("bdi", { class: "chosen" }, word.label), word.normal !== word.label && !word.why && [" ", s.written, " ", el("code", {}, el("bdi", {}, word.normal))])
    if (word.why) return [head, el("p", { class: "why" }, word.why)]
    const note = word.capped && el("p", { class: "dim capped" }, word.capped)
    if (word.kind === "lattice") return [head, note, latticeNode(word, s)]
    return [about, head, note, this.playNode(word)]
  }

  playNode(word) {
    const s = this.data.strings
    const stage = el("div", { class: "board" })
    const left = el("div", { class: "half" })
    const right = el("div", { class: "half" })
    const said = el("p", { class: "said", role: "status" })
    const show = (done) => {
      stage.replaceChildren(rowNode(word, done, s))
      said.textContent = sentence(word, done, s)
      left.replaceChildren(el("h3", {}, s.competing), pairsNode(word, done, s))
      right.replaceChildren(el("h3", {}, s.done_so_far), logNode(word, done, s, (to) => {
        this.player.go(to)
        this.player.slider.focus({ preventScroll: true }) // the line that was clicked is gone
      }))
      said.classList.toggle("finished", done === word.merges.length)
    }
    this.player = new MergesPlayer(s, word.merges.length, show)
    show(0)
    return [stage, said, word.merges.length > 0 && this.player.node,
      word.merges.length > 0 && el("div", { class: "halves" }, left, right)]
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  if (!views.has(root)) views.set(root, new Merges(root))
  const view = views.get(root)
  view.update(data, (event) => setTriggerValue("action", event))
  return () => {
    if (!root.isConnected) view.player?.stop()
  }
}
