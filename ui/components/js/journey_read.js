// Stage 1: the tokens that were read, their numbers, and how their position enters.
import { el } from "./dom.js"
import { floats, signed, striding, thousands, tone } from "./journey_layout.js"
import { rich, stageHead, tokenChip } from "./journey_parts.js"

const STRIP = {
  light: { negative: "0,114,178", positive: "213,94,0" },
  dark: { negative: "86,180,233", positive: "240,132,60" },
}

export function readStage(data, ui) {
  const values = floats(data.embedding)
  const strips = []
  const rows = data.lanes.map((lane, row) => readLane(data, ui, lane, row, values, strips))
  if (data.hidden) rows.splice(1, 0, gapLane(data))
  rows.push(joiningLane(data))
  const note = el("p", { class: "note strips-note" })
  const s = data.strings
  const node = el(
    "section",
    { class: "stage read", "aria-label": s.read_title },
    stageHead(1, s.read_title, s.read_terms),
    el(
      "div",
      { class: "stage-body" },
      el(
        "div",
        { class: "axis lane-grid", "aria-hidden": "true" },
        el("span", { class: "num" }, s.position_short),
        el("span", {}, s.token),
        el("span", { class: "num" }, "id"),
        el("span", {}, data.width ? s.vector : ""),
      ),
      el("ol", { class: "lanes" }, rows),
      note,
      el(
        "p",
        { class: "note" },
        rich(s[`position_${data.position}`], { model: data.architecture }),
      ),
    ),
  )
  return { node, paint: (theme) => paintStrips(data, strips, theme, note) }
}

function readLane(data, ui, lane, row, values, strips) {
  const s = data.strings
  const last = row === data.lanes.length - 1
  const canvas = el("canvas", { class: "strip", role: "img", "aria-label": s.vector_of })
  const readout = el("span", { class: "sr-only" })
  if (data.width)
    strips.push({ canvas, values: values.subarray(row * data.sent, (row + 1) * data.sent) })
  const button = el(
    "button",
    {
      type: "button",
      class: "pick",
      "data-key": `lane${lane.position}`,
      "data-row": row,
      "aria-pressed": "false",
      title: `${lane.label}\n${s.follow}`,
      onclick: () => ui.follow(row),
    },
    tokenChip(lane, last ? "last" : lane.source),
  )
  return el(
    "li",
    { class: `lane lane-grid${last ? " is-last" : ""}`, "data-row": row },
    el("span", { class: "num faint" }, lane.position),
    data.layers ? button : tokenChip(lane, last ? "last" : lane.source),
    el("span", { class: "num faint" }, lane.id),
    data.width ? el("span", { class: "strip-box" }, canvas, readout) : el("span"),
  )
}

function gapLane(data) {
  const s = data.strings
  return el("li", { class: "lane gap" }, rich(s.hidden, { n: thousands(data.hidden) }))
}

function joiningLane(data) {
  const lane = data.joins
  return el(
    "li",
    { class: "lane lane-grid joins" },
    el("span", { class: "num faint" }, lane.position),
    tokenChip(lane, "joins"),
    el(
      "span",
      { class: "joins-note faint" },
      data.stop ? data.strings.joined_last : data.strings.joins_next,
    ),
  )
}

function paintStrips(data, strips, theme, note) {
  const s = data.strings
  let every = 1
  for (const { canvas, values } of strips) {
    const box = canvas.parentElement.getBoundingClientRect()
    const ratio = window.devicePixelRatio || 1
    every = striding(values.length, box.width)
    const bars = Math.ceil(values.length / every)
    canvas.width = Math.max(1, Math.round(box.width * ratio))
    canvas.height = Math.max(1, Math.round(box.height * ratio))
    const pen = canvas.getContext("2d")
    for (let i = 0; i < bars; i++) {
      const t = tone(values[i * every], data.saturation)
      const x = Math.round((i * canvas.width) / bars)
      pen.fillStyle = `rgba(${t < 0 ? STRIP[theme].negative : STRIP[theme].positive},${Math.abs(t)})`
      pen.fillRect(x, 0, Math.round(((i + 1) * canvas.width) / bars) - x, canvas.height)
    }
    canvas.onpointermove = (event) => {
      const share = event.offsetX / Math.max(1, box.width)
      const at = Math.min(bars - 1, Math.max(0, Math.floor(share * bars))) * every
      canvas.title = `${s.value} ${at * data.stride + 1} / ${data.width}: ${signed(values[at], 3)}`
    }
  }
  if (!data.width) return note.replaceChildren(s.no_vectors)
  const step = every * data.stride
  const size = { n: thousands(data.width), k: step, max: data.saturation.toFixed(2) }
  note.replaceChildren(
    ...rich(step > 1 ? s.strip_some : s.strip_all, size),
    el("span", { class: `ramp strip-ramp ${theme}`, "aria-hidden": "true" }),
  )
}
