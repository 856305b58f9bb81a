import { el, fmt, themeOf } from "./dom.js"
import { announced, describe, target } from "./chips.js"
import { ack, atEnd, keyAction, newPlayer, pause, manual, play, runToEnd, setSpeed, tick, wait } from "./player.js"
import { legendNode, reveal, textNodes } from "./strip_text.js"
import { walk } from "./walk.js"
import { controls } from "./strip_controls.js"

const strips = new WeakMap()

class Strip {
  constructor(root) {
    this.root = root
    this.player = newPlayer()
    this.queue = []
    this.serial = 0
    this.expanded = false
    this.width = root.clientWidth || 800
    this.text = el("div", { class: "text", role: "group" })
    this.about = el("p", { class: "about" })
    this.note = el("p", { class: "note", role: "status" })
    this.said = el("p", { class: "sr-only", "aria-live": "polite" })
    this.legend = el("div", {})
    this.controls = controls({
      restart: () => this.order({ do: "restart" }),
      back: () => this.order({ do: "back" }),
      step: () => this.order({ do: "step" }),
      play: () => this.toggle(),
      run: () => this.start(runToEnd),
      goto: (step) => this.order({ do: "goto", step }),
      speed: (n) => this.move([setSpeed(this.player, n), null]),
    })
    root.replaceChildren(this.text, this.controls.node,
      el("div", { class: "foot" }, el("div", {}, this.about, this.note), this.legend), this.said)
    // Braces: a handler that returns false would cancel the keys of the other buttons.
    this.text.onkeydown = (event) => {
      walk(event, [...this.text.querySelectorAll("button.chip")])
    }
    this.listen()
  }

  listen() {
    const key = (event) => this.key(event)
    const click = (event) => {
      if (this.player.mode !== "paused" && !event.composedPath().includes(this.root)) this.rest()
    }
    document.addEventListener("keydown", key)
    document.addEventListener("click", click, true)
    this.observer = new ResizeObserver(() => this.resize())
    this.observer.observe(this.root)
    this.unlisten = () => {
      document.removeEventListener("keydown", key)
      document.removeEventListener("click", click, true)
      this.observer.disconnect()
      clearTimeout(this.timer)
    }
  }

  update(data, theme, emit) {
    const fresh = this.data?.run !== data.run
    // Data that answers another click counts too, unless somebody waits for just this answer.
    const idle = this.player.mode === "paused" && this.queue.length === 0
    const answered = data.ack === this.serial || idle
    Object.assign(this, { data, theme, emit })
    if (fresh) {
      this.expanded = false
      this.queue = []
      this.player = pause(this.player)
    }
    if (answered) {
      this.player = ack(this.player, data)
      if (this.queue.length) this.send(this.queue.shift())
    }
    this.draw()
    this.announce()
    this.schedule()
  }

  // A request by hand. Steps that come faster than answers wait in line; others replace them.
  order(command) {
    this.player = pause(this.player)
    const slow = command.do === "step" || command.do === "back"
    if (!slow) this.queue = []
    if (slow && this.player.sentAt !== null) this.queue = [...this.queue, command].slice(0, 64)
    else this.send(command)
    this.draw()
    this.schedule()
  }

  send(command) {
    if (command.do === "step" && atEnd(this.data)) this.queue = []
    else {
      this.player = manual(this.player, Date.now())
      this.say(command)
    }
  }

  move([player, command]) {
    this.player = player
    this.queue = player.lost ? [] : this.queue
    if (command) this.say(command)
    this.draw()
    this.schedule()
  }

  say(command) {
    const playing = this.player.mode !== "paused"
    this.emit({ ...command, playing, serial: ++this.serial })
  }

  toggle() {
    if (this.player.mode !== "paused") this.rest()
    else this.start(play)
  }

  // While it plays, the page leaves the address bar alone; now it may write it.
  rest() {
    this.move([pause(this.player), { do: "pause" }])
  }

  start(how) {
    this.queue = []
    this.move(how(this.player, this.data, Date.now()))
  }

  schedule() {
    clearTimeout(this.timer)
    const ms = wait(this.player, Date.now())
    if (ms !== null) {
      this.timer = setTimeout(() => this.move(tick(this.player, this.data, Date.now())), ms)
    }
  }

  key(event) {
    if (event.defaultPrevented || event.isComposing) return
    const node = event.composedPath()[0]
    const action = keyAction(
      { key: event.key, ctrl: event.ctrlKey, meta: event.metaKey, alt: event.altKey, shift: event.shiftKey },
      { tag: (node.tagName ?? "").toLowerCase(), role: node.getAttribute?.("role"), editable: node.isContentEditable })
    if (!action) return
    event.preventDefault()
    if (action === "toggle") this.toggle()
    else if (action === "back" || !atEnd(this.data)) this.order({ do: action })
  }

  resize() {
    if (Math.abs(this.root.clientWidth - this.width) < 8) return
    this.width = this.root.clientWidth
    if (this.data) this.draw()
  }

  draw() {
    const { data, theme, player } = this
    const focused = this.text.contains(this.root.getRootNode().activeElement)
    const folding = focused && this.root.getRootNode().activeElement.matches(".more")
    const pending = player.sentAt !== null && data.view >= data.made - 1
    this.text.setAttribute("aria-label", data.strings.title)
    this.text.replaceChildren(...textNodes(data, { theme, width: this.width, expanded: this.expanded, pending }, {
      pick: (chip) => this.order({ do: "goto", step: target(chip, data.view) }),
      about: (chip) => this.tell(chip),
      expand: () => { this.expanded = !this.expanded; this.draw() },
    }))
    const current = this.text.querySelector(".current")
    if (focused) ((folding && this.text.querySelector(".more")) || current || this.text.querySelector("button"))?.focus({ preventScroll: true })
    if (current) reveal(this.text, current)
    this.controls.update(data, player)
    this.legend.replaceChildren(legendNode(data, theme))
    this.note.textContent = player.lost ? data.strings.lost : this.stopSentence()
    this.note.classList.toggle("warning", player.lost)
    this.tell(null)
    this.root.setAttribute("aria-busy", String(player.sentAt !== null))
  }

  tell(chip) {
    const shown = chip ?? this.data.chips.find((c) => c.steps.some((s) => s.index === this.data.view))
    this.about.replaceChildren()
    if (!shown) return
    const [label, ...rest] = describe(shown, this.data.strings)
    this.about.append(el("bdi", { class: "label" }, label), ` · ${rest.join(" · ")}`)
  }

  stopSentence() {
    const { paused, strings, limit, steps, view, made } = this.data
    const stop = paused ? "user" : this.data.stop
    if (!stop || view < made - 1) return ""
    return fmt(strings[`stop_${stop}`] ?? "", { limit, token: steps[steps.length - 1] ?? "" })
  }

  // Whatever changes the sentence has it said: another step, and another language, too. Writing
  // the same one again would have it read out twice.
  announce() {
    if (this.player.mode === "running") return
    const sentence = announced(this.data)
    if (this.said.textContent !== sentence) this.said.textContent = sentence
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  if (!strips.has(root)) strips.set(root, new Strip(root))
  const strip = strips.get(root)
  strip.update(data, root.dataset.theme, (event) => setTriggerValue("action", event))
  return () => {
    strip.unlisten()
    strips.delete(root)
  }
}
