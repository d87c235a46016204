// ----------------------------------------------------------------------------------------------- mouse, touch and keyboard

function makePointer(app) {
  const { state, camera, points } = app, surface = byId('overlay'), card = byId('hover');
  const fingers = new Map();
  let moved = 0, line = null, walk = null;

  /** The node at a pixel: the nearest of those that are within reach. */
  function nodeAt(px, py) {
    const [x, y] = camera.toMap(px, py), reach = Math.max(9, app.scene.radius(camera) + 5) / camera.scale;
    const shown = app.near(x, y, reach).filter((node) => !app.hidden[node]);
    return shown.length ? shown[0] : null;
  }

  function hover(node, px, py) {
    surface.classList.toggle('over', node !== null && !state.lasso);
    if (node !== state.hovered) {
      state.change({ hovered: node });
      card.hidden = node === null;
      if (node !== null) card.replaceChildren(...hoverCard(app, node));
    }
    if (node === null) return;
    const [x, y] = camera.toScreen(points[2 * node], points[2 * node + 1]);
    const [left, top] = [px === undefined ? x : px, py === undefined ? y : py];
    const box = card.getBoundingClientRect();
    const across = left + 18 + box.width > camera.width - 8 ? left - 18 - box.width : left + 18;
    card.style.transform = `translate(${Math.max(8, across)}px, ${Math.max(8, Math.min(camera.height - box.height - 8, top + 14))}px)`;
  }
  app.hover = hover;

  /** What lies inside a line is caught. */
  app.catchIn = (drawn) => {
    const mask = new Uint8Array(app.graph.n), nodes = [];
    for (let i = 0; i < app.graph.n; i++) {
      const [x, y] = camera.toScreen(points[2 * i], points[2 * i + 1]);
      if (inside(drawn, x, y)) { mask[i] = 1; nodes.push(i); }
    }
    state.change({ selection: nodes.length ? { mask, nodes } : null, lasso: false, tab: nodes.length ? 'nodes' : state.tab });
    say(nodes.length ? `${count(nodes.length, 'node')} in the lasso.` : 'No node is in the lasso.');
  };

  surface.addEventListener('pointerdown', (event) => {
    surface.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
    moved = 0;
    if (state.lasso && fingers.size === 1) { line = [[event.clientX, event.clientY]]; app.line = line; }
  });
  surface.addEventListener('pointermove', (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) { if (event.pointerType !== 'touch') hover(nodeAt(event.clientX, event.clientY), event.clientX, event.clientY); return; }
    const [dx, dy] = [event.clientX - before[0], event.clientY - before[1]];
    moved += Math.abs(dx) + Math.abs(dy);
    if (fingers.size === 2) {
      const other = [...fingers.entries()].find(([id]) => id !== event.pointerId)[1];
      const [was, now] = [before, [event.clientX, event.clientY]].map(([x, y]) => Math.hypot(x - other[0], y - other[1]));
      camera.zoom(now / Math.max(1, was), (event.clientX + other[0]) / 2, (event.clientY + other[1]) / 2);
    } else if (line) line.push([event.clientX, event.clientY]);
    else if (moved > 3) { camera.pan(dx, dy); app.moving = true; surface.classList.add('moving'); hover(null); }
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
    app.redraw();
  });
  const end = (event) => {
    const was = fingers.delete(event.pointerId);
    app.moving = false;
    surface.classList.remove('moving');
    if (line) { const drawn = line; line = app.line = null; if (drawn.length > 2) app.catchIn(drawn); app.redraw(); return; }
    if (!was || moved > 3 || event.type === 'pointercancel') return;
    const node = nodeAt(event.clientX, event.clientY);
    if (node !== null) state.take(node, event.shiftKey);
    else if (state.chosen !== null && !event.shiftKey) state.change({ chosen: null, second: null, picking: false });
  };
  surface.addEventListener('pointerup', end);
  surface.addEventListener('pointercancel', end);
  surface.addEventListener('pointerleave', () => hover(null));
  surface.addEventListener('wheel', (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 120 : 1;
    camera.zoom(Math.exp(-Math.max(-240, Math.min(240, event.deltaY * lines)) * (event.ctrlKey ? 0.01 : 0.0022)), event.clientX, event.clientY);
    app.redraw();
  }, { passive: false });
  surface.addEventListener('dblclick', (event) => { camera.zoom(2, event.clientX, event.clientY); app.redraw(); });

  /** The next node, counted from the middle of what is seen, with its card. */
  function step(by) {
    if (!walk) {
      const { room } = camera;
      const [x, y] = camera.toMap((camera.width + room.left - room.right) / 2, (camera.height + room.top - room.bottom) / 2);
      const nodes = app.near(x, y, Math.min(camera.width, camera.height) / 2 / camera.scale).filter((node) => !app.hidden[node]).slice(0, 500);
      walk = { nodes, at: by > 0 ? -1 : 0 };
    }
    if (!walk.nodes.length) return;
    walk.at = (walk.at + by + walk.nodes.length) % walk.nodes.length;
    const node = walk.nodes[walk.at];
    hover(node);
    say(`${short(app.ids[node], 80)}, ${count(app.graph.degree[node], 'link')}`);
  }

  const keys = {
    ArrowLeft: () => camera.pan(60, 0), ArrowRight: () => camera.pan(-60, 0), ArrowUp: () => camera.pan(0, 60), ArrowDown: () => camera.pan(0, -60),
    '+': () => camera.zoom(1.5), '=': () => camera.zoom(1.5), '-': () => camera.zoom(1 / 1.5), 0: () => camera.fit(),
  };
  surface.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (keys[key]) { keys[key](); walk = null; hover(null); } else if (key === 'n' || key === 'p') step(key === 'n' ? 1 : -1);
    else if (key === 'Enter' && state.hovered !== null) state.take(state.hovered, event.shiftKey);
    else return;
    event.preventDefault();
    app.redraw();
  });
  surface.addEventListener('blur', () => { walk = null; hover(null); });

  const press = { l: 'lasso', k: 'links', t: 'names', d: 'theme' };
  document.addEventListener('keydown', (event) => {
    const writing = event.target instanceof Element && event.target.matches('input[type="text"], select');
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === 'Escape') { if (state.lasso) state.change({ lasso: false }); else state.clear(); return; }
    if (writing) return;
    if (event.key === '/') { byId('search').focus(); event.preventDefault(); } else if (press[event.key.toLowerCase()]) byId(press[event.key.toLowerCase()]).click();
  });
}
