// Everything that is known of one token. Pure functions first, then the card.

import { el, fmt } from "./dom.js"

// The chip and the part that hold `position`, or null.
export function find(chips, position) {
  for (const chip of chips) {
    const part = chip.parts.find((p) => p.position === position)
    if (part) return { chip, part, index: chip.parts.indexOf(part) }
  }
  return null
}

// Code points of a text as [{char, code: "U+0063", name}], with the names that are known.
export function points(text, names) {
  return [...text].map((char) => ({
    char,
    code: `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`,
    name: names[char] ?? "",
  }))
}

// "3–8", "3" for one alone, "" for none: first and last of a half-open range.
export function range([start, stop]) {
  if (stop <= start) return ""
  return stop === start + 1 ? String(start) : `${start}–${stop - 1}`
}

const row = (name, help, ...content) => [
  el("dt", { title: help }, name), el("dd", {}, ...content),
]

const kind = (part, s) => (part.special ? s.kind_control : s.kind_text)

function bytesNode(chip, part, s) {
  const mine = part.hex.map((byte) => el("code", { class: "byte" }, byte))
  if (chip.parts.length === 1) return [mine, el("small", {}, fmt(s.n_bytes, { n: part.hex.length }))]
  const all = chip.parts.map((p) => p.hex.map((byte) =>
    el("code", { class: p === part ? "byte mine" : "byte other" }, byte)))
  return [all, el("small", {}, fmt(s.bytes_of_all, { n: part.hex.length, all: chip.parts.flatMap((p) => p.hex).length }))]
}

function pointsNode(chip, part, data) {
  const s = data.strings
  const text = part.text || chip.text
  const all = points(text, data.names)
  const shown = all.slice(0, 12)
  return [
    shown.map((p) => el("span", { class: "point" }, el("code", {}, p.code), el("small", {}, p.name))),
    all.length > shown.length && el("small", {}, fmt(s.more, { n: all.length - shown.length })),
    !all.length && el("small", {}, s.no_text),
  ]
}

function partsNode(chip, index, s, pick) {
  if (chip.parts.length === 1) return null
  return row(s.group, s.group_help,
    el("span", { class: "sentence" }, fmt(s.part_of, { i: index + 1, n: chip.parts.length, char: chip.label })),
    el("span", { class: "parts" }, chip.parts.map((p, i) => el("button", {
      type: "button", class: "jump", "aria-current": i === index ? "true" : null,
      "aria-label": fmt(s.choose, { token: p.label, position: p.position }),
      onclick: () => pick(p.position),
    }, el("bdi", {}, p.label)))))
}

// The card of the token at `position`; `pick(position)` chooses another one.
export function cardNode(data, position, pick) {
  const s = data.strings
  const found = find(data.chips, position)
  if (!found) return el("aside", { class: "card" }, el("p", { class: "dim" }, s.not_shown))
  const { chip, part, index } = found
  return el("aside", { class: "card", "aria-label": s.card },
    el("header", {},
      el("bdi", { class: part.special ? "big control" : "big", title: part.label }, part.label),
      el("span", { class: "where" }, fmt(s.at_position, { n: part.position }))),
    el("dl", {},
      row(s.id, s.id_help, el("b", { class: "number" }, part.id)),
      row(s.piece, s.piece_help, el("code", { class: "piece" }, el("bdi", {}, part.piece || "∅"))),
      row(s.bytes, s.bytes_help, bytesNode(chip, part, s)),
      row(s.points, s.points_help, pointsNode(chip, part, data)),
      row(s.span, s.span_help, el("span", { class: "number" }, range(part.span) || "–")),
      partsNode(chip, index, s, pick),
      row(s.kind, s.kind_help, kind(part, s)),
      row(s.source, null, part.generated ? s.source_generated : s.source_prompt)))
}
