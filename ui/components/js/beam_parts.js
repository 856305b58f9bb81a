// What stands around the tree: the player, the legend, the ranking, and a list of one step.

import { el, fmt, percent } from "./dom.js"
import { candidateAt, countsOf, nameOf, nodeOf, signed } from "./beam_layout.js"
import { chips, groupOf } from "./beam_card.js"
import { MARKS } from "./beam_tree.js"

// What happened in the last step that is shown, and how the search stands.
export function summaryOf(data, shown) {
  const s = data.strings
  const step = data.steps[shown - 1]
  if (!step) return []
  const counts = countsOf(step)
  const complete = counts.finished + counts.cut
  const said = [
    fmt(s.summary_step, { beams: step.beams, n: step.candidates.length, live: counts.live, finished: complete, lost: counts.lost }),
    step.displaced > 0 && fmt(s.summary_displaced, { n: step.displaced }),
    fmt(s.summary_held, { held: step.hypotheses }),
    step.bar !== null && fmt(s.summary_full, { bar: signed(step.bar) }),
    step.hope !== null && shown < data.steps.length && fmt(s.summary_hope, { hope: signed(step.hope) }),
  ]
  if (shown === data.steps.length) said.push(fmt(s[`stop_${data.stop ?? "none"}`], { limit: data.limit }))
  return said.filter(Boolean)
}

// What greedy's path does in this search, in words.
export function greedySentence(data) {
  const s = data.strings
  const { path, leaves } = data.greedy
  const last = path.at(-1)
  if (!last) return s.greedy_unseen_first
  if (leaves === "lost") return fmt(s.greedy_lost, { step: last[0] + 1, token: data.labels[candidateAt(data, last).label] })
  if (leaves === "unseen") return fmt(s.greedy_unseen, { step: last[0] + 1 })
  if (leaves === "ended") return fmt(s.greedy_ended, { step: last[0] + 1 })
  const same = data.ranking.find((row) => row.node[0] === last[0] && row.node[1] === last[1])
  return same ? fmt(s.greedy_same, { rank: same.rank }) : s.greedy_whole
}

const button = (key, text, attributes) => el("button", { type: "button", "data-key": key, ...attributes }, text)

// `view`: shown, playing, size, allOpen, list; `hooks`: to, play, zoom, openAll.
export function playerNode(data, view, hooks) {
  const s = data.strings
  const n = data.steps.length
  const at = fmt(s.step_of, { k: view.shown, n })
  const scrubber = el("input", {
    type: "range", min: 1, max: Math.max(1, n), step: 1, value: view.shown, "data-key": "scrubber",
    "aria-label": s.scrub, "aria-valuetext": at, disabled: n < 2,
    oninput: () => hooks.to(Number(scrubber.value)),
  })
  scrubber.value = String(view.shown)
  scrubber.style.setProperty("--done", `${n > 1 ? (100 * (view.shown - 1)) / (n - 1) : 100}%`)
  return el("div", { class: "player" },
    button("back", "◀", { "aria-label": s.back, title: s.back, "aria-disabled": String(view.shown <= 1), onclick: () => hooks.to(view.shown - 1) }),
    button("play", view.playing ? "❚❚" : "▶", { "aria-label": view.playing ? s.pause : s.play, title: view.playing ? s.pause : s.play, class: "play", onclick: hooks.play }),
    button("forward", "▶❘", { "aria-label": s.forward, title: s.forward, "aria-disabled": String(view.shown >= n), onclick: () => hooks.to(view.shown + 1) }),
    scrubber, el("output", {}, at),
    button("whole", s.show_whole, { class: "wide", "aria-pressed": String(view.shown === n), onclick: () => hooks.to(n) }),
    el("span", { class: "tools" },
      !view.list && button("smaller", "−", { "aria-label": s.zoom_out, title: s.zoom_out, "aria-disabled": String(view.size === 0), onclick: () => hooks.zoom(-1) }),
      !view.list && button("larger", "+", { "aria-label": s.zoom_in, title: s.zoom_in, "aria-disabled": String(view.size === 2), onclick: () => hooks.zoom(1) }),
      button("all", view.allOpen ? s.lost_hide_all : s.lost_show_all, { class: "wide", "aria-pressed": String(view.allOpen), onclick: hooks.openAll })))
}

export function legendNode(data) {
  const s = data.strings
  const key = (fate) => el("span", { class: "key" }, el("i", { class: `sample ${fate}`, "aria-hidden": "true" }, MARKS[fate]), s[`legend_${fate}`])
  const some = (fate) => data.steps.some((step) => step.candidates.some((candidate) => candidate.fate === fate))
  return el("p", { class: "legend" }, key("live"), key("finished"), some("cut") && key("cut"), key("lost"),
    el("span", { class: "key" }, el("i", { class: "sample live faded", "aria-hidden": "true" }, MARKS.live), s.legend_faded),
    data.kind === "diverse" && el("span", { class: "key" }, el("b", { class: "group-badge", "aria-hidden": "true" }, "1"), s.legend_group),
    data.greedy && el("span", { class: "key" }, el("i", { class: "greedy-line", "aria-hidden": "true" }), el("b", { class: "greedy-badge", "aria-hidden": "true" }, "G"), s.legend_greedy))
}

function rankingRow(data, row, view, hooks) {
  const s = data.strings
  const name = nameOf(...row.node)
  const note = row.displaced ? fmt(s.ranking_displaced, { step: row.displaced + 1 }) : row.extra ? s.ranking_extra : s[`end_${row.end}`]
  const greedy = data.greedy?.leaves === "whole" && name === nameOf(...(data.greedy.path.at(-1) ?? [-1, -1]))
  return el("tr", {
    class: [view.selected === name && "selected", (row.extra || row.displaced) && "extra"].filter(Boolean).join(" ") || null,
    onmouseenter: () => hooks.point(name), onmouseleave: () => hooks.point(null),
    onclick: (event) => { if (!event.target.closest("button")) hooks.select(name) },
  },
  el("td", { class: "number" }, row.rank ?? "–"),
  el("td", { class: "text" }, el("button", {
    type: "button", "data-key": `rank-${name}`, "aria-pressed": String(view.selected === name),
    onclick: () => hooks.select(name), onfocus: () => hooks.point(name), onblur: () => hooks.point(null),
  }, el("bdi", {}, row.text.replaceAll("\n", "↵") || "∅")), greedy && el("b", { class: "greedy-badge", title: s.legend_greedy }, "G")),
  el("td", { class: "number" }, signed(row.score)),
  el("td", { class: "number" }, signed(row.sum)),
  el("td", { class: "number wide" }, row.length),
  el("td", { class: "wide" }, note, groupOf(data, row, " · ")))
}

export function rankingNode(data, view, hooks) {
  const s = data.strings
  const cell = (text, kind) => el("th", { scope: "col", class: kind }, text)
  return el("section", { class: "ranking" },
    // While it runs, nothing has been ranked yet: 0 would be a wrong answer.
    el("h2", {}, s.ranking, data.wanted > 0 && el("small", { class: "dim" }, fmt(s.ranking_wanted, { n: data.wanted }))),
    data.ranking.length === 0 ? el("p", { class: "dim" }, s.ranking_none)
      : el("table", {}, el("thead", {}, el("tr", {}, cell(s.rank, "number"), cell(s.rank_text), cell(s.card_score, "number"),
        cell(s.card_sum, "number"), cell(s.rank_tokens, "number wide"), cell(s.rank_end, "wide"))),
      el("tbody", {}, data.ranking.map((row) => rankingRow(data, row, view, hooks)))),
    data.greedy && el("p", { class: "greedy-said" }, el("b", { class: "greedy-badge", "aria-hidden": "true" }, "G"),
      el("span", {}, greedySentence(data), " ", el("span", { class: "dim" }, s.greedy_tokens, " "), chips(data, data.greedy.tokens))))
}

// The candidates of one step as a list, where there is no room for a tree.
export function listNode(data, view, hooks) {
  const s = data.strings
  const index = view.shown - 1
  const column = view.layout.columns[index]
  if (!column) return el("div", {})
  const before = (node) => (node.parent === "root" ? [] : chainLabels(data, nodeOf(node.parent)))
  return el("section", { class: "list", "aria-label": fmt(s.list, { k: view.shown }) },
    el("h2", {}, fmt(s.list, { k: view.shown })),
    el("ul", {}, column.nodes.map((node) => el("li", {}, el("button", {
      type: "button", "data-key": node.name, "aria-pressed": String(view.selected === node.name),
      class: ["item", node.candidate.fate, !view.alive.has(node.name) && node.candidate.fate !== "lost" && "faded", view.selected === node.name && "selected"].filter(Boolean).join(" "),
      onclick: () => hooks.select(node.name),
    },
    el("span", { class: "line" }, el("i", { class: "mark", "aria-hidden": "true" }, MARKS[node.candidate.fate]),
      el("bdi", { class: "label" }, data.labels[node.candidate.label]),
      view.greedy.has(node.name) && el("b", { class: "greedy-badge" }, "G"),
      el("span", { class: "number" }, percent(node.candidate.p)),
      typeof node.candidate.group === "number" && el("b", { class: "group-badge" }, node.candidate.group + 1),
    el("em", {}, s[`fate_${node.candidate.fate}`])),
    el("small", { class: "line dim" },
      el("span", { class: "tail" }, `${s.after_label} `, el("bdi", {}, before(node).slice(-4).join(" ") || s.prompt)),
      el("span", { class: "number" }, `Σ ${signed(node.candidate.sum, 2)}${data.alpha ? ` · s ${signed(node.candidate.score, 2)}` : ""}`)))))),
    column.more && (view.open.has(index) || column.hidden > 0) && el("button", { type: "button", class: "more", "data-key": `more-${index}`, "aria-expanded": String(view.open.has(index)), onclick: () => hooks.toggle(index) },
      view.open.has(index) ? s.lost_hide : fmt(s.lost_count, { n: column.hidden })))
}

function chainLabels(data, node) {
  const labels = []
  let [step, place] = node
  while (step >= 0) {
    const candidate = data.steps[step].candidates[place]
    labels.unshift(data.labels[candidate.label])
    place = candidate.parent
    step -= 1
  }
  return labels
}
