// SPDX-License-Identifier: Apache-2.0
//
// How numbers, names and files read.

/** @param {number} us  microseconds */
export function formatTime(us) {
  if (us === 0) return '0 s';
  if (us < 999.5) return `${Math.round(us)} µs`;
  if (us < 999_500) return `${significant(us / 1e3)} ms`;
  if (us < 120_000_000) return `${significant(us / 1e6)} s`;
  if (us < 7_200_000_000) return `${significant(us / 60e6)} min`;
  return `${significant(us / 3600e6)} h`;
}

/** As formatTime(), which tells no parts of a microsecond. @param {number} ns */
export function formatNanoseconds(ns) {
  if (ns === 0) return '0 s';
  if (ns < 999.5) return `${Math.round(ns)} ns`;
  return ns < 999_500 ? `${significant(ns / 1e3)} µs` : formatTime(ns / 1e3);
}

/** Three significant digits, never an exponent. @param {number} value */
function significant(value) {
  return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

/** @param {number} part @param {number} whole */
export function formatPercent(part, whole) {
  if (!(whole > 0) || part === 0) return '0 %';
  const percent = 100 * part / whole;
  if (percent > 0 && percent < 0.05) return '<0.1 %';
  return `${percent.toFixed(percent >= 99.95 ? 0 : 1)} %`;
}

/** @param {number} value */
export function formatCount(value) {
  return Math.round(value).toLocaleString('en-US');
}

/** @param {number} count @param {string} noun */
export function plural(count, noun) {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/**
 * @typedef {object} Origin
 * @property {'own' | 'package' | 'stdlib' | 'note'} kind
 * @property {string} module  what is coloured alike: a package's name, or the program's own file
 * @property {string} short   the file as a person would say it
 */

/**
 * What a code object's file tells about where it comes from.
 * @param {{name: string, file: string, note?: string}} func @returns {Origin}
 */
export function originOf({name, file, note}) {
  if (note) return {kind: 'note', module: name, short: ''};
  const path = file.replaceAll('\\', '/');
  const installed = /\/(?:site|dist)-packages\/(.+)$/.exec(path);
  if (installed) return {kind: 'package', module: topLevel(installed[1]), short: installed[1]};
  const frozen = /^<frozen ([^>]+)>$/.exec(path);
  if (frozen) return {kind: 'stdlib', module: frozen[1].split('.')[0], short: path};
  const standard = /\/(?:lib|lib64|Lib)\/(?:python3[^/]*(?:\.zip)?\/)(.+)$/.exec(path) ??
                   /\/python3\d*\.zip\/(.+)$/.exec(path);
  if (standard) return {kind: 'stdlib', module: topLevel(standard[1]), short: standard[1]};
  const parts = path.split('/');
  return {kind: 'own', module: parts.slice(-2).join('/'), short: parts.slice(-2).join('/')};
}

/** @param {string} path */
function topLevel(path) {
  return path.split('/')[0].replace(/(\.py|\.so)$/, '');
}

export const UNKNOWN = '<unknown>';

/** Names that say nothing without their file. */
const ANONYMOUS = /(^|\.)<(module|lambda|listcomp|genexpr|dictcomp|setcomp)>$/;

/**
 * A function's name as drawn: `<module>` and its like get their file.
 * @param {{name: string, file: string}} func
 */
export function displayName(func) {
  if (!ANONYMOUS.test(func.name)) return func.name || UNKNOWN;
  const file = func.file.split(/[\\/]/).pop();
  return file && !file.startsWith('<') ? `${func.name} ${file}` : func.name;
}

/**
 * A place in a file, where its function has no name: "libz.so.1.2.13+0x5d80" is "libz+0x5d80". Any
 * other name as it is.
 * @param {string} name
 */
export function shortPlace(name) {
  if (!/\+0x[0-9a-f]+$/.test(name)) return name;
  return name.replace(/\.(so|cpython-|abi3)[^+]*(?=\+0x)/, '');
}

/**
 * The part of a qualified name to keep when the whole does not fit.
 * @param {string} name
 */
export function lastPart(name) {
  // C++ has names in brackets right behind an identifier; Python's stand alone, as in "f.<locals>.g".
  if (/::|\w</.test(name)) return withoutTemplates(name).split('::').pop() || name;
  if (/\+0x[0-9a-f]+$/.test(name)) return shortPlace(name);
  const part = /([^.\s]+)( \S+)?$/.exec(name);
  return part ? part[1] : name;
}

/**
 * A C++ name without its template arguments.
 * @param {string} name
 */
function withoutTemplates(name) {
  for (;;) {
    const fewer = name.replace(/(?<!operator)<[^<>]*>/g, '');
    if (fewer === name) return name;
    name = fewer;
  }
}

/** @param {string} short @param {number} line */
export function fileAndLine(short, line) {
  return line > 0 ? `${short || '?'}:${line}` : short;
}
