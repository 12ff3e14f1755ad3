// SPDX-License-Identifier: Apache-2.0
//
// The profile embedded in the page (written by html.cpp) and the call trees made from it.
//
// The file carries stacks by line, each thread's weights on them, and nothing derived: every view
// (mode, threads, merged or side by side) is folded here when it is asked for.

/** @typedef {'wall' | 'cpu' | 'gil' | 'gpu'} Mode */

/**
 * @typedef {object} Thread
 * @property {number} tid              0: no thread, but what threads that were not sampled used, or a stream
 * @property {boolean} stream          of a GPU
 * @property {number} interpreter
 * @property {string} name
 * @property {boolean} idle
 * @property {Int32Array} stacks       stack of each entry
 * @property {Record<Mode, Float64Array>} weight   microseconds of each entry
 * @property {Record<Mode, Float64Array>} samples  samples of each entry; of a trace its calls, of a stream its works
 * @property {Float64Array} kernel                 of weight.cpu, in the kernel
 * @property {Record<Mode, number>} total          microseconds
 */

/**
 * @typedef {object} Profile
 * @property {any} meta
 * @property {any} quality
 * @property {any} range
 * @property {Mode} mode               the view to open with
 * @property {boolean} idle            open with idle threads shown
 * @property {string} title
 * @property {import('./list.js').ListData[]} lists
 * @property {Thread[]} threads        by descending CPU time
 * @property {Func[]} functions      the last ones are NOTES
 * @property {Int32Array} frameFunction
 * @property {Int32Array} frameLine
 * @property {Int32Array} stackParent  less than the stack's own index; stack 0 is the empty one
 * @property {Int32Array} stackFrame   -1 for the empty stack
 * @property {Skeleton} skeleton
 */

/**
 * @typedef {object} Func
 * @property {string} name
 * @property {string} file
 * @property {number} line
 * @property {boolean} native  machine code
 * @property {string} [note]  it is no function, but this
 */

/**
 * The tree of functions under the tree of lines: stacks that differ only in lines share a node.
 * Node 0 is the root, of the empty stack.
 * @typedef {object} Skeleton
 * @property {number} count
 * @property {Int32Array} nodeOfStack
 * @property {Int32Array} func         ROOT for node 0
 * @property {Int32Array} parent       less than the node's own index; -1 for node 0
 * @property {Int32Array} childStart   children of n: children[childStart[n] .. childStart[n + 1]]
 * @property {Int32Array} children
 * @property {Int32Array} memberStart  likewise: the stacks of each node
 * @property {Int32Array} members
 * @property {number} firstNote        nodes from here on are of NOTES
 */

/**
 * A folded view, in preorder: the subtree of i is i .. end[i]. Node 0 is the root.
 * @typedef {object} Tree
 * @property {Mode} mode
 * @property {number} count
 * @property {Int32Array} func         function, or ROOT, or threadNode(index)
 * @property {Int32Array} parent
 * @property {Int32Array} depth
 * @property {Int32Array} end
 * @property {Float64Array} self       microseconds
 * @property {Float64Array} total
 * @property {Float64Array} samples    samples in the subtree; of a trace its calls, of a GPU its works
 * @property {Float64Array} ownSamples of them, those of the node itself
 * @property {Float64Array} x          where the node starts on the axis 0 .. total[0]
 * @property {Int32Array} skeletonNode -1 for the root of several groups
 * @property {Int32Array} group        index into groups; -1 for the root of several groups
 * @property {Group[]} groups
 * @property {number} maxDepth         of what has a width
 */

/**
 * Threads folded together, with their weights by line.
 * @typedef {object} Group
 * @property {number[]} threads
 * @property {Float64Array} stackSelf
 * @property {Float64Array} stackTotal
 * @property {Float64Array} stackKernel  CPU time in the kernel, whatever the mode
 * @property {Float64Array} nodeSelf
 * @property {Float64Array} nodeTotal
 * @property {Float64Array} nodeSamples
 * @property {Float64Array} nodeOwnSamples
 * @property {boolean} hasCalls  what was called or done is shown although it took no time
 */

export const ROOT = -1;

/** @param {Thread} thread */
export function isReal(thread) {
  return thread.tid !== 0;
}

/** The `func` of a node that stands for a thread. @param {number} index */
export function threadNode(index) {
  return -2 - index;
}

/** Whether every call was traced: samples are calls then. @param {{meta: any}} profile */
export function hasCalls(profile) {
  return profile.meta.pause === 'trace';
}

/** What can be told of the profile. @param {Profile} profile @returns {Mode[]} */
export function modesOf(profile) {
  const ofThreads = modesOfThreads(profile);
  return profile.meta.gpu ? [...ofThreads, 'gpu'] : ofThreads;
}

/** @param {Profile} profile @returns {Mode[]} */
function modesOfThreads(profile) {
  if (profile.meta.pause === 'gpu') return [];
  if (profile.meta.pause === 'signal') return ['cpu'];
  if (!hasCalls(profile)) return ['wall', 'cpu', 'gil'];
  return profile.meta.cpuTime ? ['wall', 'cpu'] : ['wall'];
}

/** What stands in the graph and in the table for time in no function. @type {Func[]} */
const NOTES = [
  {name: 'outside Python', note: 'A thread was looked at and was in no Python function'},
  {name: 'without a stack',
   note: 'Before the first look at a thread, or while the sampler had no CPU'},
  {name: 'threads never seen',
   note: 'CPU time of threads that lived too briefly to be seen (a higher -r sees more) or ran no Python'},
].map((note) => ({...note, file: '', line: 0, native: false}));
const [OUTSIDE, WITHOUT_LOOK, NEVER_SEEN] = NOTES.keys();

/**
 * @param {any} raw  what html.cpp wrote
 * @returns {Profile}
 */
export function decodeProfile(raw) {
  /** @type {Func[]} */
  const functions = raw.functions.name.map((/** @type {number} */ name, /** @type {number} */ i) => ({
    name: raw.strings[name],
    file: raw.strings[raw.functions.file[i]],
    line: raw.functions.line[i],
    native: false,
  }));
  for (const i of raw.functions.native) functions[i].native = true;
  const stackParent = Int32Array.from([1, ...raw.stacks.up], (up, i) => i - up);
  const stackCount = stackParent.length;
  const frameCount = raw.frames.function.length;
  const profile = {
    meta: raw.meta,
    quality: raw.quality,
    range: raw.range,
    mode: raw.mode,
    idle: raw.idle,
    title: raw.title,
    lists: raw.lists,
    threads: raw.threads.map((/** @type {any} */ thread) =>
      decodeThread(thread, stackCount, hasCalls(raw))),
    functions: [...functions, ...NOTES],
    frameFunction: Int32Array.from([...raw.frames.function, ...NOTES.map((_, i) => functions.length + i)]),
    frameLine: Int32Array.from([...raw.frames.line, ...NOTES.map(() => 0)]),
    stackParent: Int32Array.from([...stackParent, ...NOTES.map(() => 0)]),
    stackFrame: Int32Array.from([-1, ...raw.stacks.frame, ...NOTES.map((_, i) => frameCount + i)]),
  };
  return {...profile, skeleton: buildSkeleton(profile)};
}

/**
 * What is on the empty stack goes to those of NOTES, `stackCount` and the next ones.
 * @param {any} raw @param {number} stackCount
 * @param {boolean} areCalls  whatever the time they took
 * @returns {Thread}
 */
function decodeThread(raw, stackCount, areCalls) {
  const stacks = Int32Array.from([...raw.stack, 0]);
  const last = stacks.length - 1;
  for (let i = 1; i < last; i++) stacks[i] += stacks[i - 1];
  const outside = stacks.indexOf(0);
  stacks[last] = stackCount + (isReal(raw) ? WITHOUT_LOOK : NEVER_SEEN);
  if (outside < last) stacks[outside] = stackCount + OUTSIDE;
  const column = (/** @type {string} */ name) => {
    const values = Float64Array.from([...raw[name] ?? raw.stack.map(() => 0), 0]);
    if (outside < last) {
      // Rounding may leave a microsecond less than there is.
      values[last] = Math.min(raw.unseen?.[name] ?? 0, values[outside]);
      values[outside] -= values[last];
    }
    return values;
  };
  const weight = {wall: column('wall'), cpu: column('cpu'), gil: column('gil'), gpu: column('gpu')};
  const gpu = column('gpuWorks');
  const sum = (/** @type {Float64Array} */ values) => values.reduce((a, b) => a + b, 0);
  const samples = column('samples');
  return {
    tid: raw.tid,
    stream: raw.stream ?? false,
    interpreter: raw.interpreter,
    name: raw.name,
    idle: raw.idle,
    stacks,
    weight,
    kernel: column('kernel'),
    samples: areCalls ? {wall: samples, cpu: samples, gil: samples, gpu}
                      : {wall: samples, cpu: column('cpuSamples'), gil: column('gilSamples'), gpu},
    total: {wall: sum(weight.wall), cpu: sum(weight.cpu), gil: sum(weight.gil), gpu: sum(weight.gpu)},
  };
}

/**
 * Index lists by key: of(k) is items[start[k] .. start[k + 1]], each in ascending order.
 * @param {Int32Array} keys  key of each item, 0 .. keyCount - 1
 * @param {number} keyCount
 */
function groupByKey(keys, keyCount) {
  const start = new Int32Array(keyCount + 1);
  for (const key of keys) start[key + 1]++;
  for (let k = 0; k < keyCount; k++) start[k + 1] += start[k];
  const next = start.slice();
  const items = new Int32Array(keys.length);
  keys.forEach((key, i) => { items[next[key]++] = i; });
  return {start, items};
}

/**
 * @param {Omit<Profile, 'skeleton'>} profile
 * @returns {Skeleton}
 */
function buildSkeleton(profile) {
  const {stackParent, stackFrame, frameFunction} = profile;
  const functionCount = profile.functions.length;
  const nodeOfStack = new Int32Array(stackParent.length);
  const func = [ROOT];
  const parent = [-1];
  /** @type {Map<number, number>} */ const seen = new Map();
  for (let s = 1; s < stackParent.length; s++) {
    const above = nodeOfStack[stackParent[s]];
    const f = frameFunction[stackFrame[s]];
    const key = above * functionCount + f;
    let node = seen.get(key);
    if (node === undefined) {
      node = func.length;
      func.push(f);
      parent.push(above);
      seen.set(key, node);
    }
    nodeOfStack[s] = node;
  }
  const count = func.length;
  // Without the root, which is nobody's child: hence the + 1 below.
  const byParent = groupByKey(Int32Array.from(parent.slice(1)), count);
  const byNode = groupByKey(nodeOfStack, count);
  return {
    count,
    nodeOfStack,
    func: Int32Array.from(func),
    parent: Int32Array.from(parent),
    childStart: byParent.start,
    children: byParent.items.map((i) => i + 1),
    memberStart: byNode.start,
    members: byNode.items,
    firstNote: count - NOTES.length,
  };
}

/**
 * @param {Profile} profile
 * @param {number[]} threads
 * @param {Mode} mode
 * @returns {Group}
 */
function foldThreads(profile, threads, mode) {
  const {skeleton, stackParent} = profile;
  const stackSelf = new Float64Array(stackParent.length);
  const stackKernel = new Float64Array(stackParent.length);
  const nodeSamples = new Float64Array(skeleton.count);
  for (const t of threads) {
    const thread = profile.threads[t];
    thread.stacks.forEach((s, i) => {
      stackSelf[s] += thread.weight[mode][i];
      stackKernel[s] += thread.kernel[i];
      nodeSamples[skeleton.nodeOfStack[s]] += thread.samples[mode][i];
    });
  }
  const nodeSelf = new Float64Array(skeleton.count);
  stackSelf.forEach((weight, s) => { nodeSelf[skeleton.nodeOfStack[s]] += weight; });
  const addUp = (/** @type {Float64Array} */ totals, /** @type {Int32Array} */ parents) => {
    for (let i = totals.length - 1; i > 0; i--) totals[parents[i]] += totals[i];
    return totals;
  };
  return {
    threads,
    stackSelf,
    stackTotal: addUp(stackSelf.slice(), stackParent),
    stackKernel,
    nodeSelf,
    nodeTotal: addUp(nodeSelf.slice(), skeleton.parent),
    nodeSamples: addUp(nodeSamples.slice(), skeleton.parent),
    nodeOwnSamples: nodeSamples,
    hasCalls: hasCalls(profile) || mode === 'gpu',
  };
}

/**
 * @param {Profile} profile
 * @param {number[]} threads  indices of those to show
 * @param {Mode} mode
 * @param {boolean} split     one subtree for each thread instead of all merged
 * @returns {Tree}
 */
export function buildTree(profile, threads, mode, split) {
  const groups = split ? threads.map((t) => foldThreads(profile, [t], mode))
                       : [foldThreads(profile, threads, mode)];
  const builder = new TreeBuilder(profile.skeleton, groups, mode);
  if (split) builder.addRoot();
  let x = 0;
  groups.forEach((group, g) => {
    builder.addGroup(g, split ? threadNode(group.threads[0]) : ROOT, split ? 0 : -1, x);
    x += group.nodeTotal[0];
  });
  return builder.tree();
}

/** @returns {Tree} */
export function emptyTree() {
  const builder = new TreeBuilder(/** @type {any} */ (null), [], 'wall');
  builder.addRoot();
  return builder.tree();
}

class TreeBuilder {
  /** @param {Skeleton} skeleton @param {Group[]} groups @param {Mode} mode */
  constructor(skeleton, groups, mode) {
    this.skeleton = skeleton;
    this.groups = groups;
    this.mode = mode;
    /** @type {number[]} */ this.func = [];
    /** @type {number[]} */ this.parent = [];
    /** @type {number[]} */ this.depth = [];
    /** @type {number[]} */ this.self = [];
    /** @type {number[]} */ this.total = [];
    /** @type {number[]} */ this.samples = [];
    /** @type {number[]} */ this.ownSamples = [];
    /** @type {number[]} */ this.x = [];
    /** @type {number[]} */ this.skeletonNode = [];
    /** @type {number[]} */ this.group = [];
  }

  /** A node above several groups. */
  addRoot() {
    const sum = (/** @type {(g: Group) => Float64Array} */ column) =>
      this.groups.reduce((a, g) => a + column(g)[0], 0);
    this.push(ROOT, -1, -1, -1, 0, [0, sum((g) => g.nodeTotal), sum((g) => g.nodeSamples), 0]);
  }

  /**
   * A group's tree, heaviest children first, NOTES last. Without recursion: stacks may be thousands deep.
   * @param {number} g @param {number} func  of the group's root
   * @param {number} parent @param {number} x
   */
  addGroup(g, func, parent, x) {
    const {nodeSelf, nodeTotal, nodeSamples, nodeOwnSamples} = this.groups[g];
    const todo = [{node: 0, parent, x}];
    for (let next = todo.pop(); next; next = todo.pop()) {
      const n = next.node;
      const i = this.push(n === 0 ? func : this.skeleton.func[n], next.parent, n, g, next.x,
                          [nodeSelf[n], nodeTotal[n], nodeSamples[n], nodeOwnSamples[n]]);
      const children = this.sortedChildren(n, g);
      let at = next.x;
      for (const child of children) at += nodeTotal[child];
      for (let c = children.length - 1; c >= 0; c--) {
        at -= nodeTotal[children[c]];
        todo.push({node: children[c], parent: i, x: at});
      }
    }
  }

  /**
   * @param {number} func @param {number} parent @param {number} node @param {number} g
   * @param {number} x @param {number[]} weights  self, total, samples, own samples
   */
  push(func, parent, node, g, x, weights) {
    const i = this.func.push(func) - 1;
    this.parent.push(parent);
    this.depth.push(parent < 0 ? 0 : this.depth[parent] + 1);
    this.skeletonNode.push(node);
    this.group.push(g);
    this.x.push(x);
    this.self.push(weights[0]);
    this.total.push(weights[1]);
    this.samples.push(weights[2]);
    this.ownSamples.push(weights[3]);
    return i;
  }

  /** @param {number} node @param {number} g */
  sortedChildren(node, g) {
    const {nodeTotal, nodeSamples, hasCalls} = this.groups[g];
    const {children, childStart, firstNote} = this.skeleton;
    const isNote = (/** @type {number} */ c) => Number(c >= firstNote);
    const list = children.subarray(childStart[node], childStart[node + 1]);
    return list.filter((c) => nodeTotal[c] > 0 || (hasCalls && nodeSamples[c] > 0)).sort(
      (a, b) => isNote(a) - isNote(b) || nodeTotal[b] - nodeTotal[a] || a - b);
  }

  /** @returns {Tree} */
  tree() {
    const depth = Int32Array.from(this.depth);
    const end = Int32Array.from(this.func, (_, i) => i + 1);
    for (let i = end.length - 1; i > 0; i--) {
      end[this.parent[i]] = Math.max(end[this.parent[i]], end[i]);
    }
    return {
      mode: this.mode,
      count: this.func.length,
      func: Int32Array.from(this.func),
      parent: Int32Array.from(this.parent),
      depth,
      end,
      self: Float64Array.from(this.self),
      total: Float64Array.from(this.total),
      samples: Float64Array.from(this.samples),
      ownSamples: Float64Array.from(this.ownSamples),
      x: Float64Array.from(this.x),
      skeletonNode: Int32Array.from(this.skeletonNode),
      group: Int32Array.from(this.group),
      groups: this.groups,
      maxDepth: depth.reduce((a, b, i) => (this.total[i] > 0 ? Math.max(a, b) : a), 0),
    };
  }
}

/**
 * The node of `tree` that stands for the same calls as node `i` of `other`, or the nearest one above.
 * @param {Tree} tree @param {Tree} other @param {number} i
 */
export function sameNode(tree, other, i) {
  const keyOf = (/** @type {Tree} */ t, /** @type {number} */ n) =>
    t.func[n] < 0 ? t.func[n] : t.skeletonNode[n];
  /** @type {Set<number>} */ const path = new Set();
  for (let n = i; n >= 0; n = other.parent[n]) path.add(keyOf(other, n));
  let found = 0;
  for (let c = 1; c < tree.end[found];) {
    if (path.has(keyOf(tree, c))) {
      found = c;
      c++;
    } else {
      c = tree.end[c];
    }
  }
  return found;
}
