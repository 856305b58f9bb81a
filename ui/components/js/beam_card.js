// What is known of one node: its text, its numbers, its fate, and what may come next.

import { el, fmt, percent } from "./dom.js"
import { candidateAt, difference, labelsOf, nameOf, signed } from "./beam_layout.js"
import { MARKS } from "./beam_tree.js"

const TAIL = 4

// The last tokens of a node's text, to name it in a sentence.
export function tailOf(data, node) {
  const labels = labelsOf(data, node).map((place) => data.labels[place])
  return (labels.length > TAIL ? ["…", ...labels.slice(-TAIL)] : labels).join(" ")
}

// What became of a node, as sentences.
export function fateSentences(data, node, alive) {
  const s = data.strings
  const candidate = candidateAt(data, node)
  const { fate, loss } = candidate
  if (loss) {
    const ways = [loss.by > 0 && `lost_${data.kind}_${loss.reason}`, `lost_${loss.reason}${loss.by > 0 ? "" : "_tie"}`]
    const way = ways.find((key) => key && key in s)
    return [fmt(s[way], { to: tailOf(data, loss.to), by: difference(loss.by), n: data.places })]
  }
  const same = (other) => other[0] === node[0] && other[1] === node[1]
  const later = data.displaced.find((d) => same(d.node))
  if (later) {
    return [s[`card_${fate}`], fmt(data.kind === "sampled" ? s.card_displaced_sampled : s.card_displaced, { step: later.step + 1, to: tailOf(data, later.to), by: difference(later.by) })]
  }
  const ranked = data.ranking.find((row) => same(row.node))
  const place = ranked && [fmt(s.card_rank, { rank: ranked.rank }), ranked.extra && fmt(s.card_beyond, { n: data.wanted })]
  if (fate === "live" && !ranked) return [alive.has(nameOf(...node)) ? s.card_live : s.card_died]
  return [s[`card_${fate}`], ...(place ?? [])].filter(Boolean)
}

// "group 2" behind a separator, where there are groups.
export function groupOf(data, candidate, before) {
  const { group } = candidate
  return group === null || group === undefined ? "" : before + fmt(data.strings.group_n, { n: group + 1 })
}

const row = (name, ...content) => [el("dt", {}, name), el("dd", {}, ...content)]

export function chips(data, places) {
  return el("span", { class: "chips" }, places.map((place, i) => el("bdi", {
    class: [data.specials.has(place) ? "chip control" : "chip", i === places.length - 1 && "last"].filter(Boolean).join(" "),
  }, data.labels[place])))
}

function nextNode(data, node, hooks) {
  const s = data.strings
  const here = data.node && data.node[0] === node[0] && data.node[1] === node[1]
  if (candidateAt(data, node).end) return el("p", { class: "dim" }, s.next_none)
  if (!here) return el("p", { class: "dim" }, hooks.waiting ? s.next_wait : s.next_ask)
  if (!data.next) return el("p", { class: "dim" }, s.next_failed)
  const most = Math.max(...data.next.rows.map((r) => r.p), 1e-12)
  const rows = data.next.rows.map((r) => el("li", { class: r.fate ?? "unseen" },
    el("bdi", { class: data.specials.has(r.label) ? "label control" : "label" }, data.labels[r.label]),
    el("span", { class: "number" }, percent(r.p)),
    r.fate
      ? el("button", { type: "button", class: "jump", "data-key": `next-${r.place}`, onclick: () => hooks.select(nameOf(node[0] + 1, r.place)) },
        el("i", { "aria-hidden": "true" }, MARKS[r.fate]), s[`fate_${r.fate}`])
      : el("small", { class: "dim" }, s.next_unseen),
    el("i", { class: "bar", "aria-hidden": "true", style: { width: `${(100 * r.p) / most}%` } })))
  const others = data.next.others > 0 && el("li", { class: "others" },
    el("span", {}, fmt(s.next_others, { n: data.next.others.toLocaleString("en") })), el("span", { class: "number" }, percent(data.next.rest)))
  return el("ol", { class: "next" }, rows, others)
}

// The card of `node`; `hooks`: select(name), carryOn(node), waiting.
export function cardNode(data, node, alive, hooks) {
  const s = data.strings
  const candidate = node && candidateAt(data, node)
  if (!candidate) return el("aside", { class: "card empty" }, el("p", { class: "dim" }, s.card_hint))
  const length = node[0] + 1
  const how = data.alpha === 0 ? s.card_score_zero
    : fmt(s.card_score_how, { sum: signed(candidate.sum), length, alpha: signed(data.alpha, 2) })
  const path = labelsOf(data, node)
  const parent = node[0] > 0 ? nameOf(node[0] - 1, candidate.parent) : null
  return el("aside", { class: `card ${candidate.fate}`, "aria-label": data.labels[candidate.label] },
    hooks.hint && el("p", { class: "dim small" }, s.card_hint),
    el("header", {},
      el("bdi", { class: data.specials.has(candidate.label) ? "big control" : "big", title: data.labels[candidate.label] }, data.labels[candidate.label]),
      el("span", { class: `badge ${candidate.fate}` }, el("i", { "aria-hidden": "true" }, MARKS[candidate.fate]), s[`fate_${candidate.fate}`]),
      el("span", { class: "where" }, fmt(s.column, { n: length }), groupOf(data, candidate, " · "))),
    el("div", { class: "fate" }, fateSentences(data, node, alive).map((text) => el("p", {}, text))),
    el("div", { class: "tools" },
      candidate.loss && el("button", { type: "button", "data-key": "winner", onclick: () => hooks.select(nameOf(...candidate.loss.to)) }, s.show_loser),
      parent && el("button", { type: "button", "data-key": "parent", onclick: () => hooks.select(parent) }, s.show_parent),
      el("button", {
        type: "button", class: "go", "data-key": "continue", "aria-disabled": String(!data.can_continue),
        title: data.can_continue ? s.continue_help : s.continue_none,
        onclick: () => { if (data.can_continue) hooks.carryOn(node) },
      }, s.continue, " →")),
    !data.can_continue && el("p", { class: "dim small" }, s.continue_none),
    el("dl", {},
      row(s.card_p, el("b", {}, percent(candidate.p))),
      row(s.card_sum, el("b", {}, signed(candidate.sum, 4))),
      row(s.card_score, el("b", {}, signed(candidate.score, 4)), el("small", { class: "dim" }, how)),
      candidate.ranked !== null && candidate.ranked !== undefined && row(s.card_ranked, el("b", {}, signed(candidate.ranked, 4)),
        el("small", { class: "dim" }, s[`card_ranked_${data.kind}`])),
      row(s.card_length, String(length)),
      row(s.card_id, String(data.ids[candidate.label]), data.specials.has(candidate.label) && el("small", { class: "dim" }, s.card_special))),
    el("h2", {}, s.card_path), chips(data, path),
    el("h2", { title: s.next_help }, s.next), nextNode(data, node, hooks))
}
