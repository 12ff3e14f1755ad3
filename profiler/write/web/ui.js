// SPDX-License-Identifier: Apache-2.0
//
// The page: holds what is being looked at and passes every change to the graph and the table.
import {ROOT, buildTree, decodeProfile, emptyTree, hasCalls, isReal, modesOf, sameNode} from './data.js';
import {FlameGraph} from './graph.js';
import {Table} from './table.js';
import {List} from './list.js';
import {describe, showDetail, showTip} from './tip.js';
import {UNKNOWN, fileAndLine, formatCount, formatPercent, formatTime, originOf, plural} from './text.js';
import {functionRows, markedCalls, markedWeight, moduleRows} from './query.js';
import {showHeader} from './header.js';

/** @typedef {import('./data.js').Mode} Mode */
/** @typedef {import('./data.js').Tree} Tree */
/** @typedef {import('./table.js').Row} Row */

/** @type {Record<string, Mode>} */
const MODE_KEYS = {w: 'wall', c: 'cpu', g: 'gil', u: 'gpu'};

/** More threads than this side by side are neither legible nor cheap. */
const MAX_SPLIT = 64;

/** @param {string} id @returns {any} */
const element = (id) => document.getElementById(id);

class Page {
  constructor() {
    this.profile = decodeProfile(JSON.parse(element('profile').textContent));
    this.origins = this.profile.functions.map(originOf);
    this.haystacks = this.profile.functions.map((f) => `${f.name} ${f.file}`);
    this.modes = modesOf(this.profile);
    /** @type {Mode} */ this.mode = this.profile.mode;
    this.threads = 'merged';
    this.allIdle = this.profile.threads.every((t) => t.idle || t.stream || !isReal(t));
    this.showIdle = this.profile.idle || this.allIdle;
    this.byModule = false;
    /** Instead of functions or modules. @type {import('./list.js').ListData | null} */ this.listed = null;
    /** @type {string | null} */ this.selected = null;
    this.noRegex = false;
    /** @type {Uint8Array | null} */ this.marked = null;
    this.tree = emptyTree();
    showHeader(this.profile);
    this.graph = new FlameGraph(element('graph'), this.profile, this.origins, {
      hover: (node, at) => this.hover(node, at),
      zoom: () => this.zoomed(),
      move: () => this.enableReset(),
      settled: () => {
        this.enableReset();
        if (this.listed === null) this.fillTable();
      },
      focus: (node) => this.detail(node),
    });
    this.table = new Table(document.querySelector('section.table') ?? document.body,
                           (key) => this.select(key));
    this.list = new List(element('list'), element('more'));
    this.fillModes();
    this.fillTabs();
    this.fillHelp();
    this.fillThreads();
    this.listen();
    this.refold();
  }

  // ---- what is shown

  /** @returns {number[]} */
  shownThreads() {
    if (this.threads !== 'merged' && this.threads !== 'split') return [Number(this.threads)];
    return this.threadsOfMode().filter((i) => this.showIdle || !this.profile.threads[i].idle);
  }

  /** Threads, or streams of a GPU. */
  threadsOfMode() {
    return this.profile.threads.flatMap((t, i) => (t.stream === (this.mode === 'gpu') ? [i] : []));
  }

  /** Folds anew after a change of mode or threads, staying zoomed where possible. */
  refold() {
    const before = this.tree;
    const shown = this.shownThreads();
    const split = this.threads === 'split' && shown.length > 1;
    this.tree = buildTree(this.profile, shown, this.mode, split);
    const zoomed = sameNode(this.tree, before, this.graph.zoomed);
    element('threads').title = element('threads').selectedOptions[0].text;
    const nothing = this.tree.total[0] === 0;
    element('graph').hidden = nothing;
    element('empty').hidden = !nothing;
    element('detail').hidden = nothing;
    if (nothing) element('empty').textContent = this.whyEmpty();
    element(`modes`).querySelector(`[value=${this.mode}]`).checked = true;
    this.graph.show(this.tree, zoomed);
    this.zoomed();
    this.fillTable();
  }

  whyEmpty() {
    if (this.profile.threads.length === 0) return 'The recording has no samples.';
    if (this.mode === 'cpu') return 'These threads used no CPU time. Wall time shows where they waited.';
    if (this.mode === 'gpu' && this.profile.meta.launchesOnly) return 'Launches were counted, and not timed: they have a list of their own.';
    if (this.mode === 'gpu') return 'Nothing was seen that took any time of a GPU.';
    if (this.mode === 'gil') return 'These threads were never seen holding the interpreter\'s lock.';
    return 'No time was recorded for these threads.';
  }

  /** After a zoom, and after everything that changes more. */
  zoomed() {
    this.enableReset();
    element('tip').hidden = true;
    this.showPath();
    this.mark();
    this.detail(this.graph.zoomed);
  }

  enableReset() {
    element('reset').disabled = this.graph.showsAll();
  }

  showPath() {
    const {tree, graph} = this;
    /** @type {number[]} */ const path = [];
    for (let n = graph.zoomed; n >= 0; n = tree.parent[n]) path.unshift(n);
    const items = path.flatMap((node, i) => {
      if (i === path.length - 1) {
        const here = document.createElement('strong');
        here.textContent = graph.nameOf(node);
        here.setAttribute('aria-current', 'location');
        return [here];
      }
      const step = document.createElement('button');
      step.type = 'button';
      step.textContent = graph.nameOf(node);
      step.addEventListener('click', () => graph.zoomTo(node));
      const arrow = document.createElement('i');
      arrow.textContent = '›';
      return [step, arrow];
    });
    const sum = document.createElement('em');
    sum.textContent = this.summary();
    const nav = element('path');
    nav.replaceChildren(...items, sum);
    nav.scrollLeft = nav.scrollWidth;
  }

  summary() {
    const {tree, graph} = this;
    const total = tree.total[graph.zoomed];
    const ofGpu = this.mode === 'gpu';
    const what = {wall: 'wall time', cpu: 'CPU time', gil: 'holding the GIL', gpu: 'GPU time'}[this.mode];
    const threads = this.shownThreads().filter((t) => ofGpu || isReal(this.profile.threads[t]));
    const time = `${formatTime(total)} ${what}`;
    if (graph.zoomed !== 0) return `${time}, ${formatPercent(total, tree.total[0])} of all`;
    return threads.length === 0 ? time : `${time} in ${plural(threads.length, ofGpu ? 'stream' : 'thread')}`;
  }

  // ---- marks: what is searched for, or the row that was chosen

  /** What is searched for. @returns {((text: string) => boolean) | null} */
  matcher() {
    const query = element('query').value.trim();
    this.noRegex = false;
    element('query').setAttribute('aria-invalid', 'false');
    if (query === '') return null;
    const regex = /^\/(.+)\/?$/.exec(query);
    if (regex) {
      try {
        const pattern = new RegExp(regex[1].replace(/\/$/, ''), 'i');
        return (text) => pattern.test(text);
      } catch {
        this.noRegex = true;
        element('query').setAttribute('aria-invalid', 'true');
        return () => false;
      }
    }
    const needle = query.toLowerCase();
    return (text) => text.toLowerCase().includes(needle);
  }

  mark() {
    const matches = this.matcher();
    const chosen = this.selected;
    const marks = new Uint8Array(this.profile.functions.length);
    for (let f = 0; f < marks.length; f++) {
      const found = !this.graph.isNote(f) && (matches?.(this.haystacks[f]) ?? false);
      marks[f] = Number(chosen !== null ? this.keyOf(f) === chosen : found);
    }
    const marked = matches !== null || chosen !== null;
    this.graph.setMarks(marked ? marks : null);
    // A list tells what it has of its own.
    if (this.listed === null) element('found').textContent = marked ? this.found(marks) : '';
    this.marked = chosen === null && matches ? marks : null;
  }

  /** @param {Uint8Array} marks */
  found(marks) {
    const {weight, nodes} = markedWeight(this.tree, this.graph.zoomed, marks);
    if (this.noRegex && this.selected === null) return 'not a regular expression';
    if (nodes === 0) return 'nothing found';
    const zoomed = this.graph.zoomed !== 0;
    const share = formatPercent(weight, this.tree.total[this.graph.zoomed]);
    const all = zoomed ? ` of view, ${formatPercent(weight, this.tree.total[0])} of all` : '';
    return `${share}${all} in ${plural(nodes, 'place')}`;
  }

  /**
   * Zooms to another marked call, in order of weight, round and round.
   * @param {number} step  1 or -1
   */
  goToMarked(step) {
    const {marks} = this.graph;
    if (!marks) return;
    const calls = markedCalls(this.tree, marks).filter((i) => this.tree.total[i] > 0).sort((a, b) => this.tree.total[b] - this.tree.total[a]);
    if (calls.length === 0) return;
    const at = calls.indexOf(this.graph.zoomed);
    const next = at < 0 ? (step > 0 ? 0 : calls.length - 1) : (at + step + calls.length) % calls.length;
    this.graph.zoomTo(calls[next]);
  }

  /** @param {number} func */
  keyOf(func) {
    return this.byModule ? this.origins[func].module : String(func);
  }

  /** @param {string | null} key */
  select(key) {
    this.selected = key;
    this.table.setSelected(key);
    this.mark();
  }

  fillTable() {
    const {listed} = this;
    element('weights').hidden = listed !== null;
    element('list').hidden = listed === null;
    if (listed !== null) {
      element('scope').textContent = element('scope').title = listed.summary;
      const matches = this.matcher();
      const rows = this.list.show(listed, matches);
      const found = `${formatCount(rows)} of ${plural(listed.rows.length, 'row')}`;
      element('found').textContent = matches ? found : '';
      return;
    }
    const only = this.marked;
    const top = this.graph.zoomed;
    const rows = this.byModule ? this.moduleRows(top, only) : this.functionRows(top, only);
    this.table.selected = this.selected;
    this.table.show(rows, this.tree.total[top], this.labels());
    const where = top === 0 ? '' : `in ${this.graph.nameOf(top)}: `;
    element('scope').textContent = `${where}100 % = ${formatTime(this.tree.total[top])}`;
    element('scope').title = '';
  }

  /** @returns {import('./table.js').Labels} */
  labels() {
    const counted = this.mode === 'gpu' ? {calls: 'Count', callsHint: 'How often a GPU did it'}
                  : hasCalls(this.profile)
                    ? {calls: 'Calls', callsHint: 'Those that began, recursive ones too'}
                    : {calls: '', callsHint: ''};
    if (this.byModule) return {...counted, name: 'Module', place: 'Functions', hint: ''};
    return hasCalls(this.profile)
      ? {...counted, name: 'Function', place: 'Defined at', hint: 'File, and the line of the def'}
      : {...counted, name: 'Function', place: 'Hottest line', hint: 'File, and the line with the most time'};
  }

  /** @param {number} top @param {Uint8Array | null} only @returns {Row[]} */
  functionRows(top, only) {
    return functionRows(this.profile, this.tree, top).flatMap((row) => {
      if (only && !only[row.func]) return [];
      const func = this.profile.functions[row.func];
      const name = this.graph.names[row.func];
      return [{
        key: String(row.func),
        name,
        place: fileAndLine(this.origins[row.func].short, row.hotLine || func.line),
        hint: func.note ?? `${func.name}\ndefined at ${fileAndLine(func.file, func.line)}`,
        color: this.graph.colorOfFunction(row.func),
        self: row.self,
        total: row.total,
        calls: row.calls,
      }];
    });
  }

  /** @param {number} top @param {Uint8Array | null} only @returns {Row[]} */
  moduleRows(top, only) {
    return moduleRows(this.tree, top, this.origins).flatMap((row) => {
      const functions = [...row.functions];
      if (only && !functions.some((f) => only[f])) return [];
      const {file, note} = this.profile.functions[functions[0]];
      return [{
        key: row.module,
        name: row.module,
        place: note ? '' : plural(functions.length, 'function'),
        hint: note ?? file,
        color: this.graph.colorOfFunction(functions[0]),
        self: row.self,
        total: row.total,
        calls: row.calls,
      }];
    });
  }

  // ---- one call

  /** @param {number} node @param {{x: number, y: number} | null} at */
  hover(node, at) {
    const tip = element('tip');
    if (node < 0 || !at) {
      tip.hidden = true;
      return;
    }
    showTip(tip, this.describe(node), at);
  }

  /** @param {number} node */
  detail(node) {
    showDetail(element('detail'), this.describe(node));
  }

  /** @param {number} node */
  describe(node) {
    const func = this.tree.func[node];
    const name = func >= 0 ? this.profile.functions[func].name || UNKNOWN
               : func === ROOT ? this.summary() : this.graph.nameOf(node);
    return describe(this.profile, this.tree, node, this.graph.zoomed, name);
  }

  // ---- controls

  fillModes() {
    element('modes').hidden = this.modes.length === 1;
    for (const choice of element('modes').querySelectorAll('input')) {
      choice.parentElement.hidden = !this.modes.includes(choice.value);
    }
  }

  /** Behind functions and modules what else is listed. */
  fillTabs() {
    for (const list of this.profile.lists) {
      const tab = document.createElement('button');
      tab.type = 'button';
      tab.textContent = list.label;
      tab.addEventListener('click', () => this.setTab(false, list));
      element('tabs').append(tab);
    }
    this.markTab();
  }

  /** Which one is shown, and of a GPU's those that belong to the mode. */
  markTab() {
    const {listed, byModule} = this;
    const pressed = [listed === null && !byModule, byModule, ...this.profile.lists.map((l) => l === listed)];
    const shown = [true, true, ...this.profile.lists.map((l) => !l.gpu || this.mode === 'gpu')];
    for (const [i, tab] of [...element('tabs').children].entries()) {
      tab.setAttribute('aria-pressed', String(pressed[i]));
      tab.hidden = !shown[i];
    }
  }

  /** Leaves what concerns this profile. */
  fillHelp() {
    const of = hasCalls(this.profile) ? 'calls' : 'samples';
    for (const part of element('keys').querySelectorAll('[data-of]')) {
      part.hidden = part.dataset.of === 'gpu' ? !this.modes.includes('gpu') : part.dataset.of !== of;
    }
  }

  /** With those of the mode; anew when it changes from threads to streams. */
  fillThreads() {
    const {threads} = this.profile;
    const option = (/** @type {string} */ value, /** @type {string} */ text) => new Option(text, value);
    const those = this.threadsOfMode();
    element('threads').replaceChildren(option('merged', 'all, merged'));
    if (this.shownThreads().length > 1 && those.length <= MAX_SPLIT) {
      element('threads').append(option('split', 'all, side by side'));
    }
    for (const i of those) {
      const t = threads[i];
      const id = isReal(t) ? ` · ${t.tid}` : '';
      const where = t.interpreter ? `, interpreter ${t.interpreter}` : '';
      const state = t.stream ? `${formatTime(t.total.gpu)} GPU`
                             : `${formatTime(t.total.cpu)} CPU${t.idle ? ', idle' : ''}`;
      element('threads').append(option(String(i), `${t.name || 'thread'}${id}${where} · ${state}`));
    }
    const idle = those.filter((i) => threads[i].idle).length;
    element('idle-field').hidden = idle === 0 || this.allIdle;
    element('idle-field').querySelector('span').textContent = plural(idle, 'idle thread');
    element('idle').checked = this.showIdle;
  }

  listen() {
    element('modes').addEventListener('change', (/** @type {any} */ e) => this.setMode(e.target.value));
    element('threads').addEventListener('change', (/** @type {any} */ e) => {
      this.threads = e.target.value;
      this.refold();
    });
    element('idle').addEventListener('change', (/** @type {any} */ e) => {
      this.showIdle = e.target.checked;
      this.refold();
    });
    element('query').addEventListener('input', () => this.search());
    element('reset').addEventListener('click', () => this.graph.zoomTo(0));
    element('flip').addEventListener('click', () => this.flip());
    element('help').addEventListener('click', () => this.toggleHelp());
    element('more').addEventListener('click', () => (this.listed ? this.list : this.table).showAll());
    element('by-function').addEventListener('click', () => this.setTab(false));
    element('by-module').addEventListener('click', () => this.setTab(true));
    document.addEventListener('keydown', (e) => this.key(e));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.restyle());
    addEventListener('beforeprint', () => this.setPrinting(true));
    addEventListener('afterprint', () => this.setPrinting(false));
    this.listenToSplitter();
  }

  /** @param {Mode} mode */
  setMode(mode) {
    if (!this.modes.includes(mode)) return;
    const others = (mode === 'gpu') !== (this.mode === 'gpu');
    this.mode = mode;
    if (others) {
      this.threads = 'merged';
      this.fillThreads();
      if (this.listed?.gpu) this.listed = null;
      this.markTab();
    }
    this.refold();
  }

  search() {
    this.selected = null;
    this.mark();
    this.fillTable();
  }

  flip() {
    const up = element('flip').getAttribute('aria-pressed') !== 'true';
    element('flip').setAttribute('aria-pressed', String(up));
    this.graph.setFlameUp(up);
  }

  toggleHelp() {
    element('keys').hidden = !element('keys').hidden;
    element('help').setAttribute('aria-expanded', String(!element('keys').hidden));
  }

  /** @param {boolean} byModule @param {import('./list.js').ListData | null} listed */
  setTab(byModule, listed = null) {
    this.byModule = byModule;
    this.listed = listed;
    this.selected = null;
    this.markTab();
    this.mark();
    this.fillTable();
  }

  restyle() {
    this.graph.restyle();
    this.fillTable();
  }

  /** @param {boolean} printing */
  setPrinting(printing) {
    document.documentElement.classList.toggle('printing', printing);
    this.graph.printing = printing;
    this.restyle();
  }

  /** @param {KeyboardEvent} e */
  key(e) {
    const typing = e.target instanceof HTMLInputElement && e.target.type === 'search';
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === 'Escape') return this.escape();
    if (typing && e.key === 'Enter') return this.goToMarked(e.shiftKey ? -1 : 1);
    if (typing || e.target instanceof HTMLSelectElement) return undefined;
    const mode = MODE_KEYS[e.key];
    if (mode) return this.setMode(mode);
    if (e.key === '?') return this.toggleHelp();
    if (e.key === 'n' || e.key === 'N') return this.goToMarked(e.key === 'n' ? 1 : -1);
    if (e.key !== '/') return undefined;
    e.preventDefault();
    return element('query').select();
  }

  /** Lets go of one thing at a time. */
  escape() {
    if (!element('keys').hidden) {
      this.toggleHelp();
    } else if (element('query').value !== '') {
      element('query').value = '';
      this.search();
    } else if (this.selected !== null) {
      this.select(null);
    } else if (!this.graph.showsAll()) {
      this.graph.zoomTo(0);
    }
  }

  listenToSplitter() {
    const splitter = element('splitter');
    const table = /** @type {HTMLElement} */ (document.querySelector('section.table'));
    const widen = (/** @type {number} */ width) => {
      table.style.width = `${Math.max(240, Math.min(innerWidth - 320, width))}px`;
    };
    splitter.addEventListener('pointerdown', (/** @type {PointerEvent} */ e) => splitter.setPointerCapture(e.pointerId));
    splitter.addEventListener('pointermove', (/** @type {PointerEvent} */ e) => {
      if (splitter.hasPointerCapture(e.pointerId)) widen(innerWidth - e.clientX - 4);
    });
    splitter.addEventListener('keydown', (/** @type {KeyboardEvent} */ e) => {
      const step = {ArrowLeft: 32, ArrowRight: -32}[e.key];
      if (step) widen(table.offsetWidth + step);
    });
  }
}

new Page();
document.documentElement.dataset.ready = 'true';
