// Plays the merges of one word in the browser: a position, a timer, five controls.

import { el, fmt, svg } from "./dom.js"
import { moveTo } from "./merges_state.js"

const PAUSE = 1100 // ms between two merges: long enough to read which pair won
const SHAPES = {
  start: "M5 5h2.4v14H5zM19 5v14L8.6 12z",
  back: "M16.5 5v14L6 12z",
  play: "M7 5v14l12-7z",
  pause: "M6.5 5h4v14h-4zM13.5 5h4v14h-4z",
  next: "M5 5v14l10-7zM16.6 5H19v14h-2.4z",
  end: "M4 5v14l7-7zM11 5v14l7-7zM18 5h2.4v14H18z",
}

const icon = (name) => svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: SHAPES[name] }))

export class MergesPlayer {
  // `show(done)` draws; `count` is the number of merges.
  constructor(strings, count, show) {
    Object.assign(this, { s: strings, count, show, done: 0, timer: null })
    this.buttons = Object.fromEntries(["start", "back", "play", "next", "end"].map((name) => [name, el("button", {
      type: "button", class: `control ${name}`, title: strings[`do_${name}`],
      onclick: () => (name === "play" ? this.toggle() : this.move(name)),
    }, icon(name), el("span", {}, strings[`do_${name}`]))]))
    this.slider = el("input", {
      type: "range", min: 0, max: count, step: 1, value: 0, "aria-label": strings.scrub_merges,
      oninput: () => this.go(Number(this.slider.value)),
    })
    this.readout = el("span", { class: "readout", role: "status" })
    this.node = el("div", { class: "player" },
      el("div", { class: "buttons" }, Object.values(this.buttons)), this.slider, this.readout)
    this.label()
  }

  move(what) {
    this.stop()
    const to = moveTo(what, this.done, this.count)
    if (to !== null) this.put(to)
  }

  go(done) {
    this.stop()
    this.put(Math.min(Math.max(done, 0), this.count))
  }

  put(done) {
    this.done = done
    this.label()
    this.show(done)
  }

  toggle() {
    if (this.timer !== null) {
      this.stop()
      this.label()
      return
    }
    if (this.done === this.count) this.put(0)
    this.timer = setInterval(() => {
      if (this.done + 1 >= this.count) this.stop()
      this.put(this.done + 1)
    }, PAUSE)
    this.label()
  }

  stop() {
    clearInterval(this.timer)
    this.timer = null
  }

  label() {
    const playing = this.timer !== null
    const { start, back, play, next, end } = this.buttons
    this.slider.value = String(this.done)
    this.slider.style.setProperty("--done", `${(100 * this.done) / Math.max(this.count, 1)}%`)
    this.readout.textContent = fmt(this.s.merge_of, { n: this.done, all: this.count })
    // Not "disabled": that would throw the focus off the button which has led to the end.
    const off = (button, so) => button.setAttribute("aria-disabled", String(so))
    for (const button of [start, back]) off(button, this.done === 0)
    for (const button of [next, end]) off(button, this.done === this.count)
    play.setAttribute("aria-pressed", String(playing))
    play.lastChild.textContent = playing ? this.s.do_pause : this.s.do_play
    play.firstChild.replaceWith(icon(playing ? "pause" : "play"))
  }
}
