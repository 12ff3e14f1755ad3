// SPDX-License-Identifier: Apache-2.0
//
// The flame graph, drawn on a canvas: only what can be seen is drawn, so a frame costs the same
// whether the profile has a thousand nodes or a million. (The same tree as SVG elements took 3.4 s
// to open and 1 s a frame to zoom at 50,000 nodes.)
import {LIGHT, DARK, colorOf} from './color.js';
import {displayName, fileAndLine, lastPart} from './text.js';
import {ROOT, emptyTree, isReal} from './data.js';
import {listen} from './input.js';
import {hottestLine} from './query.js';

/** @typedef {import('./data.js').Tree} Tree */
/** @typedef {import('./data.js').Profile} Profile */
/** @typedef {import('./text.js').Origin} Origin */

const MIN_TEXT_WIDTH = 28;
const ZOOM_MS = 220;
/** Height by width that leaves room for the header on a sheet. */
const PRINTED_ASPECT = 0.55;

/** What the page is told. All optional work of the page, none of the graph's.
 * @typedef {object} GraphEvents
 * @property {(node: number, at: {x: number, y: number} | null) => void} hover  -1: nothing there
 * @property {() => void} zoom     another node is zoomed to; the glide there begins
 * @property {() => void} move     the view moved freely
 * @property {() => void} settled  the glide is over: time for what takes time
 * @property {(node: number) => void} focus
 */

export class FlameGraph {
  /**
   * @param {HTMLElement} scroller  scrolls; holds a spacer, which holds a sticky canvas
   * @param {Profile} profile
   * @param {Origin[]} origins      by function
   * @param {GraphEvents} events
   */
  constructor(scroller, profile, origins, events) {
    this.scroller = scroller;
    this.spacer = /** @type {HTMLElement} */ (scroller.firstElementChild);
    this.canvas = /** @type {HTMLCanvasElement} */ (this.spacer.firstElementChild);
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext('2d'));
    this.profile = profile;
    this.origins = origins;
    this.events = events;
    this.tree = emptyTree();
    /** @type {Map<number, number>} by node, as far as asked for */ this.lines = new Map();
    this.names = profile.functions.map(displayName);
    this.zoomed = 0;
    this.hovered = -1;
    this.focused = -1;
    /** @type {Uint8Array | null} */ this.marks = null;
    this.flameUp = false;
    this.printing = false;
    this.view = {x: 0, width: 1};
    this.size = {width: 0, height: 0};
    this.scale = 1;
    this.palette = LIGHT;
    this.rowHeight = 20;
    this.font = '';
    this.look = {back: '', mark: '', markText: '', ring: '', root: '', dim: '', dimText: ''};
    /** @type {string[]} */ this.fills = [];
    this.animation = 0;
    this.scrolled = 0;
    this.fromBottom = 0;
    this.pending = false;
    /** @type {Map<string, number>} */ this.textWidths = new Map();
    this.restyle();
    new ResizeObserver(() => this.paneResized()).observe(scroller);
    scroller.addEventListener('scroll', () => this.scrolledTo(), {passive: true});
    listen(this);
  }

  /** Shows another tree, or the same one zoomed elsewhere, at once. @param {Tree} tree @param {number} zoomed */
  show(tree, zoomed) {
    if (tree !== this.tree) this.lines.clear();
    this.tree = tree;
    this.zoomed = zoomed;
    this.hovered = -1;
    this.focused = -1;
    cancelAnimationFrame(this.animation);
    this.view = this.viewOf(zoomed);
    this.resize();
    this.revealZoomed();
  }

  /** @param {Uint8Array | null} marks  by function: 0 dimmed, else bright; null: no marks */
  setMarks(marks) {
    this.marks = marks;
    this.requestDraw();
  }

  /** @param {boolean} up */
  setFlameUp(up) {
    this.flameUp = up;
    this.scroller.classList.toggle('up', up);
    this.resize();
    this.revealZoomed();
  }

  /** Takes colours and fonts from the page again. */
  restyle() {
    const style = getComputedStyle(this.scroller);
    const dark = !this.printing && matchMedia('(prefers-color-scheme: dark)').matches;
    const value = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    this.palette = dark ? DARK : LIGHT;
    this.rowHeight = parseFloat(value('--row')) || 20;
    this.font = `${parseFloat(value('--graph-font')) || 12}px ${value('font-family')}`;
    this.look = {
      back: value('--back'), mark: value('--mark'), markText: value('--mark-text'),
      ring: value('--text'), root: value('--root'), dim: value('--dim'), dimText: value('--muted'),
    };
    this.fills = [];
    this.textWidths.clear();
    this.resize();
  }

  // ---- geometry

  /** @param {number} node */
  viewOf(node) {
    return {x: this.tree.x[node], width: this.tree.total[node] || 1};
  }

  resize() {
    const width = this.scroller.clientWidth;
    const content = this.contentHeight();
    const most = this.printing ? Math.round(PRINTED_ASPECT * width) : this.scroller.clientHeight;
    const height = Math.min(most, content);
    const scale = this.printing ? 2 : devicePixelRatio || 1;
    this.spacer.style.height = `${content}px`;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.scale = scale;
    this.size = {width, height};
    this.draw();
  }

  /** What is at the pane's foundation stays there: the top of an icicle, the bottom of a flame. */
  paneResized() {
    const {fromBottom} = this;
    this.restyle();
    if (this.flameUp) {
      this.scroller.scrollTop = this.scroller.scrollHeight - this.scroller.clientHeight - fromBottom;
    }
  }

  scrolledTo() {
    const {scrollHeight, scrollTop, clientHeight} = this.scroller;
    this.fromBottom = scrollHeight - scrollTop - clientHeight;
    this.requestDraw();
  }

  contentHeight() {
    return (this.tree.maxDepth + 1) * this.rowHeight + 2;
  }

  /** Top of a row in the canvas. @param {number} depth */
  rowTop(depth) {
    const row = this.flameUp ? this.tree.maxDepth - depth : depth;
    return row * this.rowHeight + 1 - this.scrolled;
  }

  /** @param {number} y */
  depthAt(y) {
    const row = Math.floor((y + this.scroller.scrollTop - 1) / this.rowHeight);
    return this.flameUp ? this.tree.maxDepth - row : row;
  }

  /** The node under a point of the canvas, or -1. @param {number} px @param {number} py */
  nodeAt(px, py) {
    const {tree} = this;
    const depth = this.depthAt(py);
    const x = this.view.x + px / this.size.width * this.view.width;
    if (depth < 0 || x < tree.x[0] || x >= tree.x[0] + tree.total[0]) return -1;
    let node = 0;
    while (tree.depth[node] < depth) {
      let child = node + 1;
      while (child < tree.end[node] && x >= tree.x[child] + tree.total[child]) child = tree.end[child];
      if (child >= tree.end[node]) return -1;
      node = child;
    }
    return node;
  }

  /** Where a node is in the canvas, clipped to it. @param {number} node */
  boxOf(node) {
    const perUnit = this.size.width / this.view.width;
    const left = Math.max(0, (this.tree.x[node] - this.view.x) * perUnit);
    const right = Math.min(this.size.width,
                           (this.tree.x[node] + this.tree.total[node] - this.view.x) * perUnit);
    return {left, width: right - left, top: this.rowTop(this.tree.depth[node]), height: this.rowHeight};
  }

  // ---- drawing

  requestDraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  draw() {
    const {context, tree, size} = this;
    // Once for all nodes: asking may cost a layout.
    const hidden = this.flameUp ? this.contentHeight() - size.height : 0;
    this.scrolled = this.printing ? hidden : this.scroller.scrollTop;
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    context.fillStyle = this.look.back;
    context.fillRect(0, 0, size.width, size.height);
    context.font = this.font;
    context.textBaseline = 'middle';
    const perUnit = size.width / this.view.width;
    /** Last pixel column painted in each row: slivers share columns. */
    const painted = new Int32Array(tree.maxDepth + 1).fill(-1);
    for (let i = 0; i < tree.count;) {
      const left = (tree.x[i] - this.view.x) * perUnit;
      const width = tree.total[i] * perUnit;
      if (left + width <= 0 || left >= size.width || tree.total[i] === 0) {
        i = tree.end[i];
        continue;
      }
      const top = this.rowTop(tree.depth[i]);
      const visible = top + this.rowHeight > 0 && top < size.height;
      if (width < 1) {
        const column = Math.floor(left);
        if (visible && painted[tree.depth[i]] !== column) this.drawSliver(i, column, top);
        painted[tree.depth[i]] = column;
        i = tree.end[i];
        continue;
      }
      if (visible) this.drawNode(i, left, width, top);
      i++;
    }
    if (this.focused >= 0) this.drawRing(this.focused, 2);
    if (this.hovered >= 0 && this.hovered !== this.focused) this.drawRing(this.hovered, 1);
  }

  /** @param {number} node @param {number} column @param {number} top */
  drawSliver(node, column, top) {
    this.context.fillStyle = this.fillOf(node);
    this.context.globalAlpha = 0.6;
    this.context.fillRect(column, top, 1, this.rowHeight - 1);
    this.context.globalAlpha = 1;
  }

  /** @param {number} node @param {number} left @param {number} width @param {number} top */
  drawNode(node, left, width, top) {
    const {context} = this;
    const from = Math.max(left, 0);
    const to = Math.min(left + width, this.size.width);
    context.fillStyle = this.fillOf(node);
    context.fillRect(from, top, to - from - (width > 3 ? 1 : 0), this.rowHeight - 1);
    if (to - from >= MIN_TEXT_WIDTH) this.drawText(node, from + 4, to - from - 8, top);
  }

  /** Where a call spends its time, not where its function begins. @param {number} node */
  lineOf(node) {
    let line = this.lines.get(node);
    if (line === undefined) this.lines.set(node, line = hottestLine(this.profile, this.tree, node));
    return line;
  }

  /** @param {number} node @param {number} left @param {number} room @param {number} top */
  drawText(node, left, room, top) {
    const {context, tree} = this;
    const middle = top + this.rowHeight / 2;
    const func = tree.func[node];
    const name = this.nameOf(node);
    const text = this.fit(name, func >= 0 && !this.isNote(func) ? lastPart(name) : name, room);
    const color = this.textColorOf(node);
    context.fillStyle = color;
    context.fillText(text, left, middle);
    if (func < 0 || text !== name) return;
    const place = fileAndLine(this.origins[func].short, this.lineOf(node));
    const used = this.widthOf(name) + 10;
    if (used + this.widthOf(place) > room) return;
    context.fillStyle = color === this.palette.text ? this.palette.faintText : color;
    context.fillText(place, left + used, middle);
  }

  /** @param {number} node @param {number} width */
  drawRing(node, width) {
    const box = this.boxOf(node);
    if (box.width <= 0) return;
    this.context.strokeStyle = this.look.ring;
    this.context.lineWidth = width;
    this.context.strokeRect(box.left + width / 2, box.top + width / 2 - 0.5,
                            Math.max(1, box.width - width - 1), box.height - width);
  }

  /** @param {number} node */
  nameOf(node) {
    const func = this.tree.func[node];
    if (func >= 0) return this.names[func];
    if (func === ROOT) return 'all';
    const thread = this.profile.threads[-2 - func];
    return isReal(thread) ? `${thread.name || 'thread'} (${thread.tid})` : thread.name;
  }

  /** @param {number} node */
  fillOf(node) {
    const func = this.tree.func[node];
    if (func < 0) return this.look.root;
    if (!this.marks && this.isAboveZoom(node)) return this.look.root;
    if (this.marks) return this.marks[func] ? this.look.mark : this.look.dim;
    return this.fills[func] ??= this.colorOfFunction(func);
  }

  /** Whether a node is a caller of the zoomed one: drawn, but not what is looked at. @param {number} node */
  isAboveZoom(node) {
    return node < this.zoomed && this.zoomed < this.tree.end[node];
  }

  /** Whether it stands for time in no function. @param {number} func */
  isNote(func) {
    return this.origins[func].kind === 'note';
  }

  /** @param {number} func */
  colorOfFunction(func) {
    if (this.isNote(func)) return this.look.root;
    return colorOf(this.palette, this.origins[func], this.profile.functions[func].name);
  }

  /** @param {number} node */
  textColorOf(node) {
    const func = this.tree.func[node];
    if (func < 0 || (!this.marks && (this.isNote(func) || this.isAboveZoom(node)))) return this.look.ring;
    if (!this.marks) return this.palette.text;
    return this.marks[func] ? this.look.markText : this.look.dimText;
  }

  /** @param {string} text */
  widthOf(text) {
    let width = this.textWidths.get(text);
    if (width === undefined) this.textWidths.set(text, width = this.context.measureText(text).width);
    return width;
  }

  /**
   * The whole name, or a shorter one, or as much of that as there is room for.
   * @param {string} name @param {string} short @param {number} room
   */
  fit(name, short, room) {
    if (this.widthOf(name) <= room) return name;
    if (short !== name && this.widthOf(short) <= room) return short;
    let keep = Math.floor(short.length * room / this.widthOf(short));
    while (keep > 0 && this.widthOf(`${short.slice(0, keep)}…`) > room) keep--;
    return keep > 1 ? `${short.slice(0, keep)}…` : '';
  }

  // ---- moving about

  /** Zooms to a node, with a short glide. @param {number} node */
  zoomTo(node) {
    if (node < 0 || this.tree.total[node] === 0) return;
    this.zoomed = node;
    this.hovered = -1;
    this.revealZoomed();
    this.events.zoom();
    this.glideTo(this.viewOf(node));
  }

  /** @param {{x: number, width: number}} to */
  glideTo(to) {
    cancelAnimationFrame(this.animation);
    const from = this.view;
    const began = performance.now();
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    const step = () => {
      const t = still ? 1 : Math.min(1, (performance.now() - began) / ZOOM_MS);
      const eased = 1 - (1 - t) ** 3;
      // The edges glide, not the width: neither side overshoots.
      const left = from.x + (to.x - from.x) * eased;
      const end = from.x + from.width + (to.x + to.width - from.x - from.width) * eased;
      this.view = t === 1 ? to : {x: left, width: end - left};
      this.draw();
      if (t < 1) this.animation = requestAnimationFrame(step);
      else this.events.settled();
    };
    step();
  }

  /** Scrolls so that the zoomed node has a few of its callers in sight. */
  revealZoomed() {
    const depth = this.tree.depth[this.zoomed];
    const {clientHeight} = this.scroller;
    if (this.flameUp) {
      const bottom = (this.tree.maxDepth - Math.max(0, depth - 3) + 1) * this.rowHeight + 2;
      this.scroller.scrollTop = bottom - clientHeight;
    } else {
      this.scroller.scrollTop = Math.max(0, depth - 3) * this.rowHeight;
    }
  }

  /** @param {number} node */
  focusOn(node) {
    // What was called and took no time has no box.
    if (node < 0 || this.tree.total[node] === 0) return;
    this.focused = node;
    const box = this.boxOf(node);
    if (box.top < 0) this.scroller.scrollTop += box.top - 2;
    const over = box.top + box.height - this.scroller.clientHeight;
    if (over > 0) this.scroller.scrollTop += over + 2;
    this.requestDraw();
    this.events.focus(node);
  }

  /** Moves the keyboard's focus to a relative. @param {'parent' | 'child' | 'next' | 'previous'} where */
  focusMove(where) {
    const {tree} = this;
    const node = this.focused < 0 ? this.zoomed : this.focused;
    if (this.focused < 0) return this.focusOn(node);
    if (where === 'parent') return this.focusOn(tree.parent[node]);
    if (where === 'child') return this.focusOn(node + 1 < tree.end[node] ? node + 1 : -1);
    const parent = tree.parent[node];
    if (parent < 0) return undefined;
    if (where === 'next') return this.focusOn(tree.end[node] < tree.end[parent] ? tree.end[node] : -1);
    let before = -1;
    for (let child = parent + 1; child < node; child = tree.end[child]) before = child;
    return this.focusOn(before);
  }

  /** Zooms freely about a point. @param {number} px @param {number} factor */
  zoomAbout(px, factor) {
    const whole = this.tree.total[0] || 1;
    const width = Math.min(whole, Math.max(whole / 1e6, this.view.width * factor));
    const at = this.view.x + px / this.size.width * this.view.width;
    this.moveView(at - px / this.size.width * width, width);
  }

  /** @param {number} px */
  pan(px) {
    this.moveView(this.view.x + px / this.size.width * this.view.width, this.view.width);
  }

  /** @param {number} x @param {number} width */
  moveView(x, width) {
    cancelAnimationFrame(this.animation);
    this.view = {x: Math.max(0, Math.min(x, (this.tree.total[0] || 1) - width)), width};
    this.requestDraw();
    this.events.move();
  }

  /** Whether the whole graph is in view. */
  showsAll() {
    return this.zoomed === 0 && this.view.width === this.viewOf(0).width;
  }

  /** What the pointer is over, and where. @param {number} node @param {{x: number, y: number} | null} point */
  hover(node, point) {
    if (node !== this.hovered) {
      this.hovered = node;
      this.requestDraw();
    }
    this.canvas.style.cursor = node >= 0 ? 'pointer' : 'default';
    this.events.hover(node, point);
  }
}
