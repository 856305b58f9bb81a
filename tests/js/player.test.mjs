import assert from "node:assert/strict"
import { test } from "node:test"

import * as p from "../../ui/components/js/player.js"

// A page that answers after `delay` ms, a clock that only moves when told to, and the player.
function stage({ made = 1, view = 0, limit = 6, delay = 80, deaf = false, speed = 1 } = {}) {
  const run = { view, made, stop: null }
  const log = []
  let now = 0
  let answer = null
  let player = p.newPlayer(speed)

  function send([state, command]) {
    player = state
    if (!command) return
    log.push([now, command])
    answer = deaf ? null : { at: now + delay, command }
  }

  function reply({ command }) {
    if (command.do === "goto") run.view = command.step
    else if (run.view < run.made - 1) run.view += 1
    else {
      run.made = Math.min(limit, run.made + (command.count ?? 1))
      run.view = run.made - 1
    }
    run.stop = run.made >= limit ? "output_limit" : null
    player = p.ack(player, run)
  }

  function until(end) {
    for (;;) {
      const ms = p.wait(player, now)
      const next = Math.min(ms === null ? Infinity : now + ms, answer ? answer.at : Infinity)
      if (next > end) break
      now = next
      if (answer && answer.at <= now) {
        const got = answer
        answer = null
        reply(got)
      } else send(p.tick(player, run, now))
    }
    now = end
  }

  return {
    run, log, until,
    do: (how) => send(how(player, run, now)),
    set: (change) => { player = change(player) },
    get player() { return player },
    times: () => log.map(([at]) => at),
  }
}

test("playing steps once a second and stops at the end", () => {
  const s = stage()
  s.do(p.play)
  s.until(60000)
  assert.deepEqual(s.times(), [0, 1000, 2000, 3000, 4000])
  assert.equal(s.run.made, 6)
  assert.equal(s.player.mode, "paused")
  assert.equal(s.player.lost, false)
})

test("a slow answer is waited for; steps never pile up", () => {
  const s = stage({ delay: 2500, limit: 4 })
  s.do(p.play)
  s.until(60000)
  assert.deepEqual(s.times(), [0, 2500, 5000])
})

test("every speed has its own pace", () => {
  for (const speed of p.SPEEDS) {
    const s = stage({ speed, limit: 4, delay: 10 })
    s.do(p.play)
    s.until(60000)
    assert.deepEqual(s.times(), [0, 1000 / speed, 2000 / speed])
  }
})

test("a new speed counts from the step before", () => {
  const s = stage({ limit: 9, delay: 10, speed: 0.5 })
  s.do(p.play)
  s.until(500)
  s.set((player) => p.setSpeed(player, 4))
  s.until(750)
  assert.deepEqual(s.times(), [0, 500, 750])
  assert.equal(p.setSpeed(s.player, 99), s.player)
})

test("pause stops the clock, also while an answer is under way", () => {
  const s = stage()
  s.do(p.play)
  s.until(2500)
  s.set(p.pause)
  s.until(60000)
  assert.equal(s.log.length, 3)
  assert.equal(p.wait(s.player, 60000), null)
})

test("run to the end asks for four at a time, without a pause between", () => {
  const s = stage({ limit: 10, delay: 300 })
  s.do(p.runToEnd)
  s.until(60000)
  assert.deepEqual(s.log.map(([at, command]) => [at, command.count]), [[0, 4], [300, 4], [600, 4]])
  assert.equal(s.run.made, 10)
  assert.equal(s.player.mode, "paused")
})

test("a lost answer pauses after 15 seconds and says so", () => {
  const s = stage({ deaf: true })
  s.do(p.play)
  s.until(14999)
  assert.equal(s.player.mode, "playing")
  s.until(15000)
  assert.equal(s.player.mode, "paused")
  assert.equal(s.player.lost, true)
  assert.equal(s.log.length, 1)
  s.set((player) => p.ack(player, s.run))
  assert.equal(s.player.lost, false)
})

test("playing goes through the steps already made first", () => {
  const s = stage({ made: 4, view: 0, limit: 5 })
  s.do(p.play)
  s.until(2500)
  assert.deepEqual([s.run.view, s.run.made], [3, 4])
  s.until(60000)
  assert.deepEqual([s.run.view, s.run.made], [4, 5])
})

test("play at the end starts over with the steps already made", () => {
  const s = stage({ made: 3, view: 2, limit: 3 })
  s.run.stop = "end_token"
  s.do(p.play)
  assert.deepEqual(s.log, [[0, { do: "goto", step: 0 }]])
  s.until(60000)
  assert.deepEqual(s.times(), [0, 1000, 2000])
  assert.equal(s.run.view, 2)
})

test("a step by hand ends the play", () => {
  const s = stage()
  s.do(p.play)
  s.until(1500)
  s.set((player) => p.manual(player, 1500))
  assert.equal(s.player.mode, "paused")
  assert.equal(s.player.sentAt, 1500)
})

const plain = { tag: "body", role: null, editable: false }
const press = (key, target = {}, modifiers = {}) => p.keyAction({ key, ...modifiers }, { ...plain, ...target })

test("the keys", () => {
  assert.equal(press("ArrowRight"), "step")
  assert.equal(press("ArrowLeft"), "back")
  assert.equal(press(" "), "toggle")
  assert.equal(press("x"), null)
})

test("keys belong to whoever is typing or sliding", () => {
  for (const key of ["ArrowRight", "ArrowLeft", " "]) {
    for (const tag of ["input", "textarea", "select"]) assert.equal(press(key, { tag }), null)
    for (const role of ["slider", "radio", "tab", "option", "gridcell"]) assert.equal(press(key, { role }), null)
    assert.equal(press(key, { editable: true }), null)
    for (const held of ["ctrl", "meta", "alt", "shift"]) assert.equal(press(key, {}, { [held]: true }), null)
  }
})

test("space presses the button that has the focus; the arrows still play", () => {
  assert.equal(press(" ", { tag: "button" }), null)
  assert.equal(press(" ", { tag: "summary" }), null)
  assert.equal(press(" ", { tag: "div", role: "switch" }), null)
  assert.equal(press("ArrowRight", { tag: "button" }), "step")
})
