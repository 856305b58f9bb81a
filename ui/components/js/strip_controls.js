// The player's buttons, scrubber and speed; they live as long as the strip, and are updated.

import { el, fmt, svg } from "./dom.js"
import { SPEEDS, atEnd } from "./player.js"

const ICONS = {
  restart: "M12 5V1L6.5 6 12 11V7.5a5 5 0 1 1-5 5H4.5A7.5 7.5 0 1 0 12 5z",
  back: "M17 5v14L7 12zM5 5h2v14H5z",
  step: "M7 5v14l10-7zM17 5h2v14h-2z",
  play: "M7 4.5v15L20 12z",
  pause: "M6 5h4v14H6zM14 5h4v14h-4z",
  run: "M4 5v14l8-7zM12 5v14l8-7z",
}

const KEYS = { back: "ArrowLeft", step: "ArrowRight", play: "Space" }

function icon(name) {
  return svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }))
}

// {node, update(data, player)}; `hooks` are functions named like the buttons, and goto, speed.
export function controls(hooks) {
  const buttons = Object.fromEntries(["restart", "back", "step", "play", "run"].map((name) => [name,
    el("button", { type: "button", class: `control ${name}`, "aria-keyshortcuts": KEYS[name], onclick: () => press(name) })]))
  const press = (name) => buttons[name].getAttribute("aria-disabled") !== "true" && hooks[name]()
  const scrubber = el("input", { type: "range", min: 1, step: 1 })
  const readout = el("output", { class: "readout" })
  const speed = el("select", { onchange: () => hooks.speed(Number(speed.value)) })
  const speedName = el("span", {})
  let now = null
  scrubber.oninput = () => show(Number(scrubber.value) - 1)
  scrubber.onchange = () => hooks.goto(Number(scrubber.value) - 1)

  function show(view) {
    const s = now.strings
    const values = { step: view + 1, limit: now.limit, token: now.steps[view] }
    readout.textContent = view < 0 ? s.no_steps : fmt(s.at, values)
    scrubber.setAttribute("aria-valuetext", view < 0 ? s.no_steps : fmt(s.at_token, values))
  }

  function face(name, s, key) {
    const button = buttons[name === "pause" ? "play" : name]
    const shown = key ? el("kbd", { "aria-hidden": "true" }, key) : ""
    button.replaceChildren(icon(name), el("span", { class: "name" }, s[name]), shown)
    button.title = s[`${name}_help`]
  }

  // A disabled button would drop the focus of a reader who has just stepped to the end with it.
  function allow(name, can) {
    buttons[name].setAttribute("aria-disabled", String(!can))
  }

  function update(data, player) {
    now = data
    const s = data.strings
    const moving = player.mode !== "paused"
    face("restart", s)
    face("back", s, s.key_back)
    face("step", s, s.key_step)
    face(moving ? "pause" : "play", s, s.key_play)
    buttons.play.dataset.moving = moving
    face("run", s)
    allow("step", !atEnd(data))
    allow("run", !atEnd(data))
    allow("play", !atEnd(data) || data.made > 1)
    scrubber.max = String(Math.max(1, data.made))
    scrubber.value = String(data.view + 1)
    scrubber.disabled = data.made < 2
    scrubber.setAttribute("aria-label", s.scrub)
    const done = data.made > 1 ? (100 * data.view) / (data.made - 1) : 100
    scrubber.style.setProperty("--done", `${done}%`)
    show(data.view)
    speedName.textContent = s.speed
    speed.replaceChildren(...SPEEDS.map((n) => el("option", { value: n, selected: n === player.speed },
      fmt(s.per_second, { n }))))
  }

  const node = el("div", { class: "player" }, el("div", { class: "buttons" }, Object.values(buttons)),
    el("div", { class: "scrub" }, scrubber, readout),
    el("label", { class: "speed" }, speedName, speed))
  return { node, update }
}
