// SPDX-License-Identifier: Apache-2.0
//
// Mouse, finger, wheel and keyboard on the flame graph.

/** @typedef {import('./graph.js').FlameGraph} FlameGraph */

/** A press that moves farther than this is a drag, not a click. */
const CLICK_SLACK = 3;

/** @param {FlameGraph} graph */
export function listen(graph) {
  listenToPointer(graph);
  graph.scroller.addEventListener('wheel', (e) => onWheel(graph, e), {passive: false});
  graph.scroller.addEventListener('keydown', (e) => onKey(graph, e));
}

/** A point of the canvas. @param {FlameGraph} graph @param {MouseEvent} e */
function pointOf(graph, e) {
  const box = graph.canvas.getBoundingClientRect();
  return {x: e.clientX - box.left, y: e.clientY - box.top};
}

/** @param {FlameGraph} graph */
function listenToPointer(graph) {
  const {canvas} = graph;
  let drag = {x: 0, moved: false, down: false};
  canvas.addEventListener('pointerdown', (e) => {
    drag = {x: e.clientX, moved: false, down: e.button === 0};
  });
  canvas.addEventListener('pointermove', (e) => {
    // A finger hides what it points at, and lifting it zooms.
    if (e.pointerType === 'touch') return;
    if (drag.down && e.buttons === 1 && (drag.moved || Math.abs(e.clientX - drag.x) > CLICK_SLACK)) {
      graph.pan(drag.x - e.clientX);
      graph.hover(-1, null);
      drag = {x: e.clientX, moved: true, down: true};
      return;
    }
    const point = pointOf(graph, e);
    graph.hover(graph.nodeAt(point.x, point.y), {x: e.clientX, y: e.clientY});
  });
  canvas.addEventListener('pointerleave', () => graph.hover(-1, null));
  canvas.addEventListener('click', (e) => {
    if (drag.moved) return;
    const point = pointOf(graph, e);
    graph.zoomTo(graph.nodeAt(point.x, point.y));
  });
}

/** @param {FlameGraph} graph @param {WheelEvent} e */
function onWheel(graph, e) {
  if (e.ctrlKey || e.metaKey) graph.zoomAbout(pointOf(graph, e).x, Math.exp(e.deltaY * 0.004));
  else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) graph.pan(e.deltaX || e.deltaY);
  else return;
  e.preventDefault();
}

/** @param {FlameGraph} graph @param {KeyboardEvent} e */
function onKey(graph, e) {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const deeper = graph.flameUp ? 'ArrowUp' : 'ArrowDown';
  const higher = graph.flameUp ? 'ArrowDown' : 'ArrowUp';
  /** @type {Record<string, () => void>} */ const actions = {
    [deeper]: () => graph.focusMove('child'),
    [higher]: () => graph.focusMove('parent'),
    ArrowLeft: () => graph.focusMove('previous'),
    ArrowRight: () => graph.focusMove('next'),
    Enter: () => graph.zoomTo(graph.focused),
    ' ': () => graph.zoomTo(graph.focused),
    Backspace: () => graph.zoomTo(graph.tree.parent[graph.zoomed]),
    Home: () => graph.zoomTo(0),
  };
  if (!actions[e.key]) return;
  e.preventDefault();
  actions[e.key]();
}
