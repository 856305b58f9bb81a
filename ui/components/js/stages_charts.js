// The small picture on each stage's card: the distribution that enters it, by rank, with the
// stage's own cut-off. Built once, then only attributes change.
import { svg } from "./dom.js"
import { entropyAfter, probabilityOfRank } from "./decode.js"
import { stagesHistogram, stagesLength, stagesSamples, stagesX } from "./stages.js"

const CHART_W = 240
const CHART_H = 84

export function chartOf(name, size, label) {
  const shapes = {
    above: svg("path", { class: "area-removed" }),
    removed: svg("path", { class: "area-removed" }),
    kept: svg("path", { class: "area-kept" }),
    line: svg("path", { class: "curve" }),
    level: svg("path", { class: "cut" }),
    cut: svg("path", { class: "cut" }),
  }
  const node = svg(
    "svg",
    { class: "chart", viewBox: `0 0 ${CHART_W} ${CHART_H}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    Object.values(shapes),
  )
  const samples = stagesSamples(size)
  const draw = { temperature: chartHeat, top_p: chartSum }[name] ?? chartCut
  return { node, update: (before, stage, log) => draw(shapes, { samples, size, before, stage, log }) }
}

// The scores: of a small vocabulary one by one, of a large one as a histogram whose counts are
// drawn on a logarithmic axis.
export function chartOfLogits(prepared, words) {
  const small = prepared.order.length <= 60
  const heights = small ? chartScores(prepared) : chartCounts(prepared)
  const width = CHART_W / heights.length
  const bars = heights.map((part, i) => {
    const height = part ? Math.max(2, CHART_H * part) : 0
    return svg("rect", { x: i * width + 0.5, y: CHART_H - height, width: width - 1, height, class: "area-model" })
  })
  const label = small ? words.logits_chart_small : words.logits_chart
  return svg(
    "svg",
    { class: "chart", viewBox: `0 0 ${CHART_W} ${CHART_H}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    bars,
  )
}

function chartCounts(prepared) {
  const { counts } = stagesHistogram(prepared, 48)
  const most = Math.log1p(Math.max(...counts))
  return counts.map((count) => Math.log1p(count) / most)
}

// By rank, from a fifth for the lowest possible score to all of it for the highest.
function chartScores({ sorted }) {
  const low = Math.min(...Array.from(sorted).filter((score) => score > -Infinity))
  const range = sorted[0] - low || 1
  return Array.from(sorted, (score) => (score > -Infinity ? 0.2 + (0.8 * (score - low)) / range : 0))
}

function chartSet(shape, d) {
  if (shape.drawn === d) return
  shape.drawn = d
  shape.setAttribute("d", d)
}

// Steps over ranks [from, to): the height of `f` at each sampled rank, held until the next one.
function chartSteps({ samples, size }, f, from, to, closed) {
  const parts = []
  const x = (rank) => (CHART_W * stagesX(rank, size)).toFixed(1)
  for (let i = 0; i < samples.length; i++) {
    const start = Math.max(samples[i], from)
    const stop = Math.min(samples[i + 1] ?? size, to)
    if (start >= stop) continue
    const y = (CHART_H * (1 - f(start))).toFixed(1)
    parts.push(`${parts.length ? "L" : closed ? `M${x(start)},${CHART_H}L` : "M"}${x(start)},${y}L${x(stop)},${y}`)
  }
  if (!parts.length) return ""
  return parts.join("") + (closed ? `L${x(to)},${CHART_H}Z` : "")
}

function chartVertical(rank, size) {
  const x = (CHART_W * stagesX(rank, size)).toFixed(1)
  return `M${x},0L${x},${CHART_H}`
}

function chartLevel(height) {
  const y = (CHART_H * (1 - height)).toFixed(1)
  return `M0,${y}L${CHART_W},${y}`
}

const chartPeak = (interval) => probabilityOfRank(interval, interval.start)

function chartHeat(shapes, look) {
  const { before, stage, log, size } = look
  const top = 1.05 * Math.max(chartPeak(before), chartPeak(stage.interval))
  const height = (interval) => (rank) => stagesLength(probabilityOfRank(interval, rank), top, log)
  chartSet(shapes.kept, chartSteps(look, height(stage.interval), 0, size, true))
  chartSet(shapes.line, chartSteps(look, height(before), 0, size, false))
}

// Where a stage cuts: the areas of what it drops from the top and from the bottom, and of what it
// keeps between them.
function chartAreas(shapes, look, height) {
  const { start, length } = look.stage.interval
  chartSet(shapes.above, start > 0 ? chartSteps(look, height, 0, start, true) : "")
  chartSet(shapes.removed, chartSteps(look, height, start + length, look.size, true))
  chartSet(shapes.kept, chartSteps(look, height, start, start + length, true))
}

function chartCut(shapes, look) {
  const { before, stage, log, size } = look
  const top = 1.05 * chartPeak(before)
  chartAreas(shapes, look, (rank) => stagesLength(probabilityOfRank(before, rank), top, log))
  const rank = stage.name === "top_k" ? Math.min(before.start + stage.parameter, size) : null
  const level = { min_p: () => stage.parameter * chartPeak(before), typical_p: () => Math.exp(-entropyAfter(before).nats) }[stage.name]
  const on = stage.parameter !== null
  chartSet(shapes.cut, on && rank !== null ? chartVertical(rank, size) : "")
  chartSet(shapes.level, on && level ? chartLevel(stagesLength(level(), top, log)) : "")
}

function chartSum(shapes, look) {
  const { before, stage, size } = look
  const { start, cumulative, total, length } = before
  const sum = (rank) => (rank < start ? 0 : 0.96 * Math.min(1, cumulative[Math.min(rank - start, length - 1)] / total))
  chartAreas(shapes, look, sum)
  const on = stage.parameter !== null
  const end = stage.interval.start + stage.survivors
  chartSet(shapes.level, on ? chartLevel(0.96 * stage.parameter) : "")
  chartSet(shapes.cut, on && end < size ? chartVertical(end, size) : "")
}
