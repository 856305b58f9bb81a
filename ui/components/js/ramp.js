// A probability as a colour: one hue, pale for unlikely and strong for likely, and black or
// white text on it, whichever can be read better (never below 4.5 : 1).

const STOPS = {
  light: [[237, 244, 250], [126, 184, 222], [0, 84, 138]],
  dark: [[28, 42, 54], [24, 104, 156], [150, 212, 248]],
}

const mix = (a, b, x) => a.map((value, i) => Math.round(value + (b[i] - value) * x))

export function shade(p, theme) {
  const [low, middle, high] = STOPS[theme]
  const x = Math.min(1, Math.max(0, p))
  return x < 0.5 ? mix(low, middle, 2 * x) : mix(middle, high, 2 * x - 1)
}

function luminance(rgb) {
  const [r, g, b] = rgb.map((value) => {
    const c = value / 255
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

export function contrast(a, b) {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x)
  return (high + 0.05) / (low + 0.05)
}

// Background and text of a chip with probability p.
export function ramp(p, theme) {
  const background = shade(p, theme)
  const white = contrast(background, [255, 255, 255]) >= contrast(background, [0, 0, 0])
  return { background: `rgb(${background.join(", ")})`, color: white ? "#ffffff" : "#000000" }
}
