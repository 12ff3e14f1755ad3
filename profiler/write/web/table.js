// SPDX-License-Identifier: Apache-2.0
//
// The table beside the graph: functions or modules of what the graph is zoomed to.
import {formatCount, formatPercent, formatTime, plural, shortPlace} from './text.js';

/**
 * @typedef {object} Row
 * @property {string} key      stays the same when the view changes
 * @property {string} name
 * @property {string} place
 * @property {string} hint     for people who rest the mouse on it
 * @property {string} color
 * @property {number} self
 * @property {number} total
 * @property {number} calls    of a trace; of a GPU its works
 */

/** Of the columns that have others at times; without `calls` there is no such column.
 * @typedef {{name: string, place: string, hint: string, calls: string, callsHint: string}} Labels */
/** @typedef {'calls' | 'self' | 'total' | 'name' | 'place'} Column */

const FIRST_ROWS = 200;

/** @type {{id: Column, label: string, className: string, hint: string}[]} */
const COLUMNS = [
  {id: 'calls', label: '', className: 'calls', hint: ''},
  {id: 'self', label: 'Self', className: 'number', hint: 'Time in the function itself'},
  {id: 'total', label: 'Total', className: 'number', hint: 'Time in it and in all it called; recursion counted once'},
  {id: 'name', label: '', className: 'name', hint: ''},
  {id: 'place', label: '', className: 'place', hint: ''},
];

export class Table {
  /**
   * @param {HTMLElement} section
   * @param {(key: string | null) => void} select  a row was chosen, or let go
   */
  constructor(section, select) {
    this.columns = COLUMNS;
    this.select = select;
    this.head = /** @type {HTMLElement} */ (section.querySelector('thead tr'));
    this.body = /** @type {HTMLElement} */ (section.querySelector('tbody'));
    this.more = /** @type {HTMLButtonElement} */ (section.querySelector('#more'));
    /** @type {Row[]} */ this.rows = [];
    this.whole = 0;
    this.limit = FIRST_ROWS;
    this.labels = {name: '', place: '', hint: '', calls: '', callsHint: ''};
    /** @type {string | null} */ this.selected = null;
    /** @type {Column} */ this.sortedBy = 'self';
    this.descending = true;
    this.body.addEventListener('click', (e) => {
      const row = /** @type {HTMLElement} */ (e.target).closest('tr');
      if (row?.dataset.key === undefined) return;
      this.select(row.dataset.key === this.selected ? null : row.dataset.key);
    });
    this.renderHead(this.labels);
  }

  /**
   * @param {Row[]} rows
   * @param {number} whole   what the percentages are of
   * @param {Labels} labels
   */
  show(rows, whole, labels) {
    this.rows = rows;
    this.whole = whole;
    this.limit = FIRST_ROWS;
    this.renderHead(labels);
    this.render();
  }

  showAll() {
    this.limit = Infinity;
    this.render();
  }

  /** @param {string | null} key */
  setSelected(key) {
    this.selected = key;
    for (const row of this.body.children) {
      row.setAttribute('aria-selected', String(/** @type {HTMLElement} */ (row).dataset.key === key));
    }
  }

  /** @param {Column} column */
  sortBy(column) {
    this.descending = column === this.sortedBy ? !this.descending : column !== 'name' && column !== 'place';
    this.sortedBy = column;
    this.renderHead(this.labels);
    this.render();
    /** @type {HTMLElement | null} */ (this.head.querySelector(`[data-column=${column}]`))?.focus();
  }

  /** @param {Labels} labels */
  renderHead(labels) {
    this.labels = labels;
    this.columns = COLUMNS.filter((column) => labels.calls !== '' || column.id !== 'calls');
    this.head.replaceChildren(...this.columns.map((column) => {
      const cell = document.createElement('th');
      cell.scope = 'col';
      cell.className = column.className;
      if (column.id === this.sortedBy) {
        cell.setAttribute('aria-sort', this.descending ? 'descending' : 'ascending');
      }
      const button = document.createElement('button');
      button.type = 'button';
      button.dataset.column = column.id;
      button.title = column.id === 'place' ? labels.hint
                   : column.id === 'calls' ? labels.callsHint : column.hint;
      button.textContent = column.label || labels[/** @type {'calls' | 'name' | 'place'} */ (column.id)];
      button.addEventListener('click', () => this.sortBy(column.id));
      cell.append(button);
      return cell;
    }));
  }

  render() {
    const {sortedBy} = this;
    const sign = this.descending ? -1 : 1;
    const rows = this.rows.toSorted((a, b) => {
      const first = sortedBy === 'name' || sortedBy === 'place' ? a[sortedBy].localeCompare(b[sortedBy])
                                                                : a[sortedBy] - b[sortedBy];
      return sign * first || b.total - a.total || a.name.localeCompare(b.name);
    });
    this.body.replaceChildren(...rows.slice(0, this.limit).map((row) => this.renderRow(row)));
    this.more.hidden = rows.length <= this.limit;
    this.more.textContent = `Show all ${plural(rows.length, 'row')}`;
  }

  /** @param {Row} row */
  renderRow(row) {
    const line = document.createElement('tr');
    line.dataset.key = row.key;
    line.setAttribute('aria-selected', String(row.key === this.selected));
    if (this.columns[0].id === 'calls') {
      const cell = line.insertCell();
      cell.className = 'calls';
      cell.textContent = cell.title = formatCount(row.calls);
    }
    for (const column of /** @type {const} */ (['self', 'total'])) {
      const cell = line.insertCell();
      cell.className = 'number';
      cell.style.setProperty('--share', String(100 * row[column] / (this.whole || 1)));
      cell.textContent = formatPercent(row[column], this.whole);
      cell.title = `${formatTime(row[column])} ${column}`;
    }
    const name = line.insertCell();
    name.title = row.hint;
    const chip = document.createElement('span');
    chip.className = 'chip';
    chip.style.background = row.color;
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = shortPlace(row.name);
    const label = document.createElement('div');
    label.className = 'label';
    label.append(chip, button);
    name.append(label);
    const place = line.insertCell();
    place.className = 'place';
    place.title = row.hint;
    // Cut at the front: the file's name and the line matter most.
    const text = document.createElement('bdi');
    text.textContent = row.place;
    place.append(text);
    return line;
  }
}
