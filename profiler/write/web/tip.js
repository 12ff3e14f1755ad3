// SPDX-License-Identifier: Apache-2.0
//
// What is told of one call: in the tooltip beside the mouse and in the line below the graph.
import {fileAndLine, formatCount, formatPercent, formatTime, plural} from './text.js';
import {hasCalls} from './data.js';
import {linesOfNode, splitOfNode} from './query.js';

/** @typedef {import('./data.js').Tree} Tree */
/** @typedef {import('./data.js').Profile} Profile */

const LINES_SHOWN = 6;

/**
 * @typedef {object} Described
 * @property {string} name
 * @property {string[]} places  what each line number is, said beside it
 * @property {[string, string, string, string][]} rows  label, time, of all, of view; Total last
 * @property {boolean} zoomed
 * @property {{label: string, time: string, share: string}[]} split  what used the CPU
 * @property {{label: string, time: string, share: string}[]} lines
 * @property {number} moreLines
 * @property {string} count    how many samples, calls or works of a GPU
 */

/**
 * @param {Profile} profile @param {Tree} tree
 * @param {number} node @param {number} top  the zoomed node
 * @param {string} name
 * @returns {Described}
 */
export function describe(profile, tree, node, top, name) {
  const func = profile.functions[tree.func[node]];
  const all = tree.total[0], view = tree.total[top], own = tree.total[node];
  const inside = node >= top && node < tree.end[top];
  // Of a call no lines are told.
  const lines = hasCalls(profile) ? [] : linesOfNode(profile, tree, node).filter((l) => l.line > 0);
  const row = (/** @type {string} */ label, /** @type {number} */ time) =>
    /** @type {[string, string, string, string]} */ (
      [label, formatTime(time), formatPercent(time, all), inside ? formatPercent(time, view) : '']);
  return {
    name,
    places: func ? placesOf(func, lines) : [],
    rows: func && !func.note ? [row('Self', tree.self[node]), row('Total', own)] : [row('Total', own)],
    zoomed: top !== 0 && inside,
    split: splitRows(profile, tree, node),
    lines: lines.slice(0, LINES_SHOWN).map((l) => ({
      label: `line ${l.line}`,
      time: l.self === l.total ? `${formatTime(l.total)} self`
                               : `${formatTime(l.total)}${l.self ? `, ${formatTime(l.self)} self` : ''}`,
      share: formatPercent(l.total, own),
    })),
    moreLines: Math.max(0, lines.length - LINES_SHOWN),
    count: countOf(profile, tree, node),
  };
}

/** @param {Profile} profile @param {Tree} tree @param {number} node */
function countOf(profile, tree, node) {
  if (tree.mode === 'gpu') return `${plural(tree.samples[node], 'time')} on a GPU`;
  return hasCalls(profile) ? callsOf(tree, node) : plural(tree.samples[node], 'thread sample');
}

/** Of a function its own calls, of a thread or all of them what there are. @param {Tree} tree @param {number} node */
function callsOf(tree, node) {
  if (tree.func[node] < 0) return plural(tree.samples[node], 'call');
  const calls = tree.ownSamples[node];
  // It had begun before, or went on here as generators do.
  if (calls === 0) return 'no call began here';
  return calls === 1 ? 'called once' : `called ${formatCount(calls)} times`;
}

/** @param {Profile} profile @param {Tree} tree @param {number} node */
function splitRows(profile, tree, node) {
  const split = splitOfNode(profile, tree, node);
  if (!split) return [];
  return [['Python', split.python], ['native code', split.native], ['kernel', split.kernel]].map(
    ([label, time]) => ({
      label: String(label),
      time: formatTime(Number(time)),
      share: formatPercent(Number(time), tree.total[node]),
    }));
}

/** @param {import('./data.js').Func} func @param {{line: number}[]} lines  heaviest first */
function placesOf(func, lines) {
  if (func.note) return [func.note];
  const defined = func.line > 0 ? `defined at ${fileAndLine(func.file, func.line)}` : func.file;
  return lines.length > 0 ? [defined, `hottest line ${lines[0].line}`] : [defined];
}

/** @param {HTMLElement} tip @param {Described} it @param {{x: number, y: number}} at  in the window */
export function showTip(tip, it, at) {
  const title = document.createElement('h2');
  title.textContent = it.name;
  const place = document.createElement('p');
  place.textContent = [...it.places, it.count].filter(Boolean).join(' · ');
  const table = document.createElement('table');
  if (it.zoomed) addRow(table, ['', '', 'of all', 'of view'], 'lines');
  for (const row of it.rows) addRow(table, it.zoomed ? row : row.slice(0, 3));
  if (it.split.length > 0) addRow(table, ['CPU used by', '', 'of this call'], 'lines');
  for (const part of it.split) addRow(table, [part.label, part.time, part.share]);
  if (it.lines.length > 0) addRow(table, ['Hottest lines', '', 'of this call'], 'lines');
  for (const line of it.lines) addRow(table, [line.label, line.time, line.share]);
  if (it.moreLines > 0) addRow(table, [`and ${plural(it.moreLines, 'more line')}`], 'lines');
  tip.replaceChildren(title, place, table);
  tip.hidden = false;
  const {width, height} = tip.getBoundingClientRect();
  const left = Math.min(at.x + 14, innerWidth - width - 8);
  const below = at.y + 18;
  const top = below + height < innerHeight - 4 ? below : at.y - height - 12;
  tip.style.transform = `translate(${Math.max(8, left)}px, ${Math.max(4, top)}px)`;
}

/** @param {HTMLTableElement} table @param {string[]} cells @param {string} [className] */
function addRow(table, cells, className) {
  const row = table.insertRow();
  if (className) row.className = className;
  for (const text of cells) {
    const cell = row.insertCell();
    cell.textContent = text;
    if (cells.length === 1) cell.colSpan = 4;
  }
}

/** One or two lines of text, also what a screen reader says. @param {HTMLElement} line @param {Described} it */
export function showDetail(line, it) {
  const name = document.createElement('b');
  name.textContent = it.name;
  const words = [
    ...it.places,
    ...it.rows.map(([label, time, ofAll, ofView]) =>
      `${label.toLowerCase()} ${time} (${ofAll}${label === 'Total' && it.zoomed ? `, ${ofView} of view` : ''})`),
    it.count,
  ];
  if (it.split.length > 0) {
    words.push(it.split.map((part) => `${part.label} ${part.share}`).join(', '));
  }
  if (it.lines.length > 0) {
    words.push(it.lines.slice(0, 3).map((l) => `${l.label} ${l.share}`).join(', '));
  }
  line.replaceChildren(name, ` · ${words.filter(Boolean).join(' · ')}`);
}
