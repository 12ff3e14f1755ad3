// SPDX-License-Identifier: Apache-2.0
//
// Colours by module: the hue is a hash of the module's name, so a module looks the same in every
// report. The program's own files are vivid, installed packages softer, the standard library
// nearly grey: one's own code stands out. Lightness is fixed in a perceptual space (OKLCH), which
// keeps the contrast of the text on every hue.

/**
 * @typedef {object} Palette
 * @property {number} lightness
 * @property {Record<'own' | 'package' | 'stdlib' | 'note', number>} chroma
 * @property {string} text
 * @property {string} faintText
 */

/** @type {Palette} */
export const LIGHT = {
  lightness: 0.84,
  chroma: {own: 0.1, package: 0.075, stdlib: 0.04, note: 0},
  text: '#14161a',
  faintText: '#14161ab8',
};

/** @type {Palette} */
export const DARK = {
  lightness: 0.43,
  chroma: {own: 0.095, package: 0.065, stdlib: 0.032, note: 0},
  text: '#f4f5f7',
  faintText: '#f4f5f7c4',
};

/** FNV-1a. @param {string} text */
export function hashOf(text) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  return hash >>> 0;
}

/**
 * @param {Palette} palette
 * @param {{kind: 'own' | 'package' | 'stdlib' | 'note', module: string}} origin
 * @param {string} name  a module's functions differ a little
 */
export function colorOf(palette, origin, name) {
  const hue = hashOf(origin.module) % 360;
  const own = hashOf(name);
  const shade = (own % 7 - 3) * 0.012;
  return oklch(palette.lightness + shade, palette.chroma[origin.kind], hue + (own >> 8) % 5 * 4 - 8);
}

/**
 * Björn Ottosson's OKLab, clipped to sRGB.
 * @param {number} lightness @param {number} chroma @param {number} hue  degrees
 */
export function oklch(lightness, chroma, hue) {
  const a = chroma * Math.cos(hue * Math.PI / 180);
  const b = chroma * Math.sin(hue * Math.PI / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3;
  const channel = (/** @type {number} */ linear) => {
    const v = linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
    return Math.round(255 * Math.min(1, Math.max(0, v))).toString(16).padStart(2, '0');
  };
  return '#' + channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s) +
         channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s) +
         channel(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s);
}
