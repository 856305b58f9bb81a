// Stage 3: candidates with both probabilities, the filters, the draw.
import { el, percent } from "./dom.js"
import { apart, signed, thousands } from "./journey_layout.js"
import { rich, stageHead, tok } from "./journey_parts.js"

// The name of a candidate's button says these in words.
const HIDDEN = { "aria-hidden": "true" }

export function chooseStage(data, ui) {
  const s = data.strings
  const node = el(
    "section",
    { class: "stage choose", "aria-label": s.choose_title },
    stageHead(3, s.choose_title, s.choose_terms),
    el(
      "div",
      { class: "stage-body" },
      el(
        "div",
        { class: "cand-grid cand-head", "aria-hidden": "true" },
        el("span", {}, s.token),
        el("span"),
        el("span", { class: "num p-model" }, s.p_model),
        el("span", { class: "num p-filtered" }, s.p_filtered),
        el("span", { class: "num" }, s.logit),
      ),
      el("ol", { class: "candidates" }, candidateRows(data, ui)),
      el("p", { class: "force-hint" }, data.recorded ? s.force_later : s.force_hint),
      filterCards(data),
      draw(data),
    ),
  )
  return { node }
}

function candidateRows(data, ui) {
  const s = data.strings
  const all = [...data.candidates, data.others]
  const most = Math.max(1e-12, ...all.map((c) => Math.max(c.model, c.filtered)))
  const rows = data.candidates.map((c, i) => {
    const far = c.chosen && i > 0 && c.rank > i + 1
    const button = el(
      "button",
      {
        type: "button",
        class: `cand cand-grid${c.chosen ? " chosen" : ""}${c.removed ? " removed" : ""}`,
        "data-key": `cand${i}`,
        disabled: data.recorded,
        title: `${c.label} · id ${c.id}${data.recorded ? "" : `\n${s.force}`}`,
        "aria-label": candidateLabel(data, c),
        "aria-current": c.chosen ? "true" : null,
        onclick: () => ui.act({ do: "force", step: data.step, id: c.id }),
      },
      el("bdi", { class: "cand-label" }, c.chosen && el("span", HIDDEN, "● "), c.label),
      far ? el("span", { class: "bars-rank", ...HIDDEN }, rankText(s, c.rank)) : bars(c, most),
      el("span", { class: "num p-model", ...HIDDEN }, percent(c.model)),
      el(
        "span",
        { class: "num p-filtered", ...HIDDEN },
        c.removed ? removedText(s, c.removed) : percent(c.filtered),
      ),
      el("span", { class: "num faint", ...HIDDEN }, c.logit === null ? "−∞" : signed(c.logit, 1)),
    )
    return el("li", {}, button)
  })
  const o = data.others
  if (o.count) {
    rows.push(
      el(
        "li",
        { class: "cand cand-grid others" },
        el("span", { class: "cand-label" }, rich(s.others, { n: thousands(o.count) })),
        bars(o, most),
        el("span", { class: "num" }, percent(o.model)),
        el("span", { class: "num" }, percent(o.filtered)),
        el("span"),
      ),
    )
  }
  return rows
}

const rankText = (s, rank) => s.rank.replace("{n}", thousands(rank))
const removedText = (s, stage) => s.removed.replace("{stage}", s[stage])

function candidateLabel(data, c) {
  const s = data.strings
  const after = c.removed
    ? removedText(s, c.removed)
    : `${s.p_filtered_long} ${percent(c.filtered)}`
  const end = c.chosen ? `; ${s.chosen}` : ""
  return `${c.label}: ${rankText(s, c.rank)}; ${s.p_model_long} ${percent(c.model)}; ${after}${end}`
}

function bars(c, most) {
  const wide = (p) => ({ width: `${(100 * p) / most}%`, visibility: p > 0 ? "" : "hidden" })
  return el(
    "span",
    { class: "bars" },
    el("i", { class: "bar model", style: wide(c.model) }),
    el("i", { class: "bar filtered", style: wide(c.filtered) }),
  )
}

function filterCards(data) {
  const s = data.strings
  // More than the usual four: pills in place of cards, and only of those that are on.
  const many = data.filters.length > 4
  const shown = data.filters.filter((f) => !many || f.parameter !== null)
  const cards = shown.map((f, i) => {
    const same = many && f.survivors === (shown[i - 1]?.survivors ?? data.vocabulary)
    const off = f.parameter === null
    // A temperature of 1 is shown, and changes nothing.
    const idle = off || (f.name === "temperature" && f.parameter === 1)
    return el(
      "li",
      { class: `filter${idle ? " off" : ""}` },
      el("span", { class: "filter-name" }, s[f.name]),
      el("strong", {}, off ? s.off : setting(f)),
      same ? null : el("small", {}, rich(s.left, { n: thousands(f.survivors) })),
    )
  })
  return el("ol", { class: many ? "filters many" : "filters", "aria-label": s.filters }, cards)
}

// 1 → "1.0" for a temperature, which is never a whole number by nature.
function setting(f) {
  if (typeof f.parameter === "string") return el("bdi", { title: f.parameter }, f.parameter)
  return !["top_k", "no_repeat_ngram"].includes(f.name) && Number.isInteger(f.parameter)
    ? f.parameter.toFixed(1)
    : String(f.parameter)
}

// The cumulative bar after the filters, likely tokens first, and where u falls on it.
function draw(data) {
  const d = data.dice
  const s = data.strings
  const at = (share) => `${100 * share}%`
  const segments = d.segments.map((seg) => {
    const chosen = seg.id === data.joins.id
    const style = { left: at(seg.from), width: at(seg.to - seg.from) }
    const wide = seg.to - seg.from > 0.1
    return el(
      "span",
      {
        class: `seg${chosen ? " chosen" : ""}`,
        style,
        title: `${seg.label} · ${percent(seg.to - seg.from)}`,
      },
      wide ? el("bdi", {}, seg.label) : null,
    )
  })
  if (d.rest.count) {
    const style = { left: at(d.rest.from), width: at(1 - d.rest.from) }
    const text = 1 - d.rest.from > 0.2 ? rich(s.rest, { n: thousands(d.rest.count) }) : null
    segments.push(el("span", { class: "seg rest", style }, text))
  }
  const shown = d.segments.some((seg) => seg.id === data.joins.id)
  if (!shown && d.chosen && d.rule !== "greedy") {
    segments.push(
      el("span", {
        class: "seg chosen thin",
        style: { left: at(d.chosen[0]), width: at(d.chosen[1] - d.chosen[0]) },
      }),
    )
  }
  const late = d.u > 0.9
  const needle =
    d.u === null
      ? null
      : el(
          "span",
          { class: `needle ${d.rule}${late ? " late" : ""}`, style: { left: at(d.u) } },
          el("b", {}, late ? "u ▲" : "▲ u"),
        )
  return el(
    "div",
    { class: "draw" },
    el("p", { class: "draw-says" }, drawText(data)),
    el(
      "div",
      { class: `draw-bar${needle ? " with-needle" : ""}`, role: "img", "aria-label": s.draw_bar },
      el("div", { class: "segs" }, segments),
      needle,
    ),
  )
}

function drawText(data) {
  const d = data.dice
  const s = data.strings
  const token = tok(data.joins.label)
  if (d.rule === "greedy") return rich(s.greedy, { token })
  const digits = d.chosen ? apart(...d.chosen) : 3
  const range = d.chosen && { from: d.chosen[0].toFixed(digits), to: d.chosen[1].toFixed(digits) }
  const u = d.u === null ? "" : d.u.toFixed(digits)
  if (d.rule === "sample") return rich(s.falls, { u, token, ...range })
  const forced = rich(s.forced, { token })
  if (d.would !== null) forced.push(s.sentence_join, ...rich(s.forced_dice, { u, token: tok(d.would) }))
  return forced
}
