// SPDX-License-Identifier: Apache-2.0
//
// What is listed beside functions and modules, of the whole recording: kernels, idle time, ranges.
import {fileAndLine, formatCount, formatNanoseconds, formatPercent, originOf, plural} from './text.js';

/**
 * `time`: nanoseconds; `share`: nanoseconds of the list's `whole`; `place`: function, file, lines.
 * @typedef {'count' | 'time' | 'share' | 'name' | 'place'} Kind
 * @typedef {{label: string, kind: Kind, hint: string}} ListColumn
 * @typedef {number | string | [string, string, string]} Value
 * @typedef {{values: Value[], hint: string, depth: number}} ListRow
 */

/**
 * @typedef {object} ListData       written by html_lists.cpp
 * @property {string} label
 * @property {boolean} gpu          belongs to a GPU's time
 * @property {string} summary
 * @property {number} whole         what shares are of
 * @property {ListColumn[]} columns
 * @property {ListRow[]} rows       a tree by their depth, or the most time first
 */

const CLASSES = {count: 'calls', time: 'time', share: 'number', name: 'name', place: 'place'};
const FIRST_LISTED = 200;

/** @param {Value} value */
function placeText(value) {
  const [name, file, lines] = /** @type {[string, string, string]} */ (value);
  if (file === '') return name;
  const {short} = originOf({name, file});
  return `${name} · ${lines === '' ? short : `${short}:${lines}`}`;
}

/** @param {Value} value @param {Kind} kind @param {number} whole */
function textOf(value, kind, whole) {
  if (kind === 'count') return formatCount(Number(value));
  if (kind === 'time') return formatNanoseconds(Number(value));
  if (kind === 'share') return formatPercent(Number(value), whole);
  return kind === 'place' ? placeText(value) : String(value);
}

/** What a row is found by. @param {ListRow} row @param {ListData} data */
function wordsOf(row, data) {
  const words = row.values.filter((_, i) => ['name', 'place'].includes(data.columns[i].kind));
  return [...words, row.hint].flat().join(' ');
}

export class List {
  /** @param {HTMLTableElement} table @param {HTMLButtonElement} more */
  constructor(table, more) {
    this.table = table;
    this.more = more;
    this.limit = FIRST_LISTED;
    this.sortedBy = -1;
    this.descending = true;
    /** @type {ListData | null} */ this.data = null;
    /** @type {((text: string) => boolean) | null} */ this.matches = null;
  }

  /**
   * How many rows there are.
   * @param {ListData} data @param {((text: string) => boolean) | null} matches  what to leave
   */
  show(data, matches) {
    if (data !== this.data) this.sortedBy = -1;
    this.data = data;
    this.matches = matches;
    this.limit = FIRST_LISTED;
    return this.render();
  }

  showAll() {
    this.limit = Infinity;
    this.render();
  }

  render() {
    const {data} = this;
    if (data === null) return 0;
    const rows = this.rowsOf(data);
    this.table.createTHead().replaceChildren(this.renderHead(data));
    const body = this.table.tBodies[0] ?? this.table.createTBody();
    body.replaceChildren(...rows.slice(0, this.limit).map((row) => this.renderRow(row, data)));
    this.more.hidden = rows.length <= this.limit;
    this.more.textContent = `Show all ${plural(rows.length, 'row')}`;
    return rows.length;
  }

  /** A tree that is not whole is none. */
  get isTree() {
    return this.sortedBy < 0 && this.matches === null;
  }

  /** @param {ListData} data @returns {ListRow[]} */
  rowsOf(data) {
    const {matches, sortedBy} = this;
    const rows = matches ? data.rows.filter((row) => matches(wordsOf(row, data))) : data.rows;
    if (sortedBy < 0) return rows;
    const {kind} = data.columns[sortedBy];
    const sign = this.descending ? -1 : 1;
    const text = (/** @type {ListRow} */ row) => textOf(row.values[sortedBy], kind, 1);
    return rows.toSorted((a, b) => sign * (kind === 'name' || kind === 'place'
      ? text(a).localeCompare(text(b)) : Number(a.values[sortedBy]) - Number(b.values[sortedBy])));
  }

  /** @param {ListData} data */
  renderHead(data) {
    const line = document.createElement('tr');
    line.append(...data.columns.map((column, i) => {
      const cell = document.createElement('th');
      cell.scope = 'col';
      cell.className = CLASSES[column.kind];
      if (i === this.sortedBy) cell.setAttribute('aria-sort', this.descending ? 'descending' : 'ascending');
      const button = document.createElement('button');
      button.type = 'button';
      button.title = column.hint;
      button.textContent = column.label;
      button.addEventListener('click', () => this.sortBy(i));
      cell.append(button);
      return cell;
    }));
    return line;
  }

  /** Once more the other way round, then as it was. @param {number} column */
  sortBy(column) {
    const kind = this.data?.columns[column].kind;
    const first = kind !== 'name' && kind !== 'place';
    if (column !== this.sortedBy) {
      this.sortedBy = column;
      this.descending = first;
    } else if (this.descending === first) {
      this.descending = !first;
    } else {
      this.sortedBy = -1;
    }
    this.render();
    this.table.querySelectorAll('button')[column]?.focus();
  }

  /** @param {ListRow} row @param {ListData} data */
  renderRow(row, data) {
    const line = document.createElement('tr');
    for (const [i, value] of row.values.entries()) {
      const {kind} = data.columns[i];
      const cell = line.insertCell();
      cell.className = CLASSES[kind];
      const text = textOf(value, kind, data.whole);
      if (kind === 'share') {
        cell.style.setProperty('--share', String(100 * Number(value) / (data.whole || 1)));
        cell.title = formatNanoseconds(Number(value));
      }
      if (kind === 'place') {
        // Cut at the front: the file's name and the line matter most.
        const [name, file, lines] = /** @type {[string, string, string]} */ (value);
        cell.title = file === '' ? name : `${name}\n${fileAndLine(file, 0)}${lines === '' ? '' : `:${lines}`}`;
        const ordered = document.createElement('bdi');
        ordered.textContent = text;
        cell.append(ordered);
        continue;
      }
      if (kind === 'name') {
        if (this.isTree) cell.style.setProperty('--depth', String(row.depth));
        cell.title = row.hint === '' ? text : `${text}\n${row.hint}`;
      }
      cell.textContent = text;
    }
    return line;
  }
}
