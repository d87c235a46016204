// -------------------------------------------------------------------------------------------------------- everything together

const TABS = ['node', 'pair', 'new', 'nodes', 'about'];

/** The colours of the page as the map needs them. */
function readTheme() {
  const style = getComputedStyle(document.documentElement), found = {};
  for (const name of ['paper', 'ink', 'soft', 'accent', 'predicted', 'known', 'held', 'card']) {
    const hex = style.getPropertyValue(`--${name}`).trim();
    found[name] = hex;
    found[`${name}Rgb`] = rgbOf(hex);
  }
  return found;
}

function makeTabs(app) {
  const { state } = app;
  const show = () => {
    // Who was inside a view that goes away continues in the one that comes.
    const within = TABS.some((name) => name !== state.tab && byId(`view-${name}`).contains(document.activeElement));
    TABS.forEach((name) => {
      const tab = byId(`tab-${name}`), on = name === state.tab;
      tab.setAttribute('aria-selected', String(on));
      tab.tabIndex = on ? 0 : -1;
      byId(`view-${name}`).hidden = !on;
    });
    if (within) byId(`view-${state.tab}`).focus({ preventScroll: true });
  };
  TABS.forEach((name, place) => {
    byId(`tab-${name}`).addEventListener('click', () => state.change({ tab: name }));
    byId(`tab-${name}`).addEventListener('keydown', (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = TABS[(place + step + TABS.length) % TABS.length];
      state.change({ tab: next });
      byId(`tab-${next}`).focus();
      event.preventDefault();
    });
  });
  state.listen(['tab'], show);
  show();
}

function makeTools(app) {
  const { state, camera } = app;
  const click = (id, act) => byId(id).addEventListener('click', () => { act(); app.redraw(); });
  click('zoom-in', () => camera.zoom(1.7));
  click('zoom-out', () => camera.zoom(1 / 1.7));
  click('fit', () => camera.fit());
  for (const name of ['lasso', 'links', 'names']) {
    click(name, () => state.change({ [name]: !state[name] }));
    const press = () => byId(name).setAttribute('aria-pressed', String(state[name]));
    state.listen([name], press);
    press();
  }
  state.listen(['lasso'], () => byId('overlay').classList.toggle('lasso', state.lasso));
  if (!app.scene.canLink) { byId('links').disabled = true; byId('links').title = `${count(app.graph.targets.length, 'link')} are too many to draw at once; those of a chosen node are drawn`; }
  click('theme', () => state.change({ theme: state.theme === 'dark' ? 'light' : 'dark' }));
  state.listen(['theme'], () => { document.documentElement.dataset.theme = state.theme; app.theme = readTheme(); });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (event) => {
    if (!document.documentElement.dataset.theme) { state.change({ theme: event.matches ? 'dark' : 'light' }); delete document.documentElement.dataset.theme; app.theme = readTheme(); }
  });
}

/** The curves of the choice, with their inks, for the scene and for the heads of arrows. */
function inkedCurves(app) {
  const { theme } = app, strongest = Math.max(...linksOfChoice(app).map((each) => each.p || 0), 1e-9);
  return linksOfChoice(app).map(({ from, to, kind, p, strong }) => {
    const share = kind === 'new' ? Math.sqrt((p || 0) / strongest) : 0;
    const look = {
      train: { colour: theme.knownRgb, alpha: 0.62, width: 1.3 }, held_out: { colour: theme.heldRgb, alpha: 0.8, width: 1.5 },
      new: { colour: theme.predictedRgb, alpha: 0.25 + 0.7 * share, width: 1.1 + 1.3 * share },
    }[kind];
    return { from, to, kind, bend: 0.13, dashed: kind === 'new', ...look, ...(strong ? { alpha: 1, width: 3 } : {}) };
  });
}

function makePainter(app) {
  const { state, camera, scene, overlay, points, graph } = app;
  let curves = [], named = [];

  function prepare() {
    curves = inkedCurves(app);
    scene.setCurves(curves);
    const around = new Set(curves.flatMap((curve) => [curve.from, curve.to]));
    if (state.chosen !== null) around.add(state.chosen);
    scene.setChosen([...around]);
    const order = { new: 0, held_out: 1, train: 2 };
    const byRank = [...curves].sort((a, b) => order[a.kind] - order[b.kind] || b.alpha - a.alpha);
    named = [...new Set(byRank.flatMap((curve) => [curve.from, curve.to]))].filter((node) => node !== state.chosen && node !== state.second).slice(0, 60);
  }
  state.listen(['chosen', 'second', 'predicted', 'theme'], prepare);

  const screen = (node) => camera.toScreen(points[2 * node], points[2 * node + 1]);
  function paintOver(ratio) {
    const { theme } = app, radius = scene.radius(camera);
    overlay.begin(camera, ratio);
    if (graph.directed || !app.meta.symmetric) for (const curve of curves) overlay.arrow(screen(curve.from), screen(curve.to), curve.bend, radius + 3, `rgb(${curve.colour})`, Math.max(0.5, curve.alpha));
    const halo = theme.paper;
    for (const [node, colour] of [[state.chosen, theme.accent], [state.second, theme.accent]]) {
      if (node === null) continue;
      const [x, y] = screen(node);
      overlay.ring(x, y, Math.max(4, radius * 1.25) * scene.weightOf(node) + 4, colour, 2.2);
      overlay.text(short(app.ids[node], 40), x, y, { size: 14, bold: true, colour: theme.ink, halo, gap: radius + 12, force: true });
    }
    if (state.names) {
      if (state.chosen !== null) for (const node of named) { const [x, y] = screen(node); overlay.text(short(app.ids[node]), x, y, { colour: theme.ink, halo, gap: radius + 6 }); }
      else if (camera.scale < camera.fitted * 3) for (const each of [...app.places].sort((a, b) => b.num - a.num)) {
        if (state.only && !state.only.has(each.place)) continue;
        const [x, y] = camera.toScreen(each.x, each.y);
        overlay.text(short(each.name, 30), x, y, { size: 13.5, bold: true, colour: theme.ink, halo, centred: true });
      } else nearNames(radius, halo);
    }
    if (state.hovered !== null) { const [x, y] = screen(state.hovered); overlay.ring(x, y, radius * scene.weightOf(state.hovered) + 3.5, theme.ink, 1.6); }
    if (app.line) overlay.lasso(app.line, theme.accent);
  }

  /** Close to the map, nodes have their names: those with the most links first. */
  function nearNames(radius, halo) {
    const { room } = camera, [x, y] = camera.toMap((camera.width + room.left - room.right) / 2, (camera.height + room.top - room.bottom) / 2);
    const around = app.near(x, y, Math.hypot(camera.width, camera.height) / 2 / camera.scale).filter((node) => !app.hidden[node]);
    if (around.length > 3000) return;
    around.sort((a, b) => graph.degree[b] - graph.degree[a] || a - b);
    for (const node of around.slice(0, 90)) { const [px, py] = screen(node); overlay.text(short(app.ids[node], 20), px, py, { size: 11.5, colour: app.theme.soft, halo, gap: radius + 5 }); }
  }

  return (ratio, hasty = false) => {
    const { theme } = app;
    scene.draw(camera, ratio, { paper: theme.paperRgb, ink: theme.inkRgb, dimmed: state.chosen !== null, quiet: Boolean(state.selection || state.only), links: state.links && !hasty, dark: state.theme === 'dark' });
    paintOver(ratio);
  };
}

async function open() {
  const sections = await readSections(), { meta, ids } = sections;
  const graph = readGraph(sections, meta);
  const scores = makeScores(sections, meta, graph), evidence = makeEvidence(sections, meta, graph);
  const points = Float32Array.from(sections.points, (step) => step / 65535);
  const { columns, ways } = makeColourings(sections, meta, graph);
  const app = { sections, meta, ids, graph, scores, evidence, points, columns, ways, safe: false, line: null, hidden: new Uint8Array(graph.n), places: [] };
  app.lowered = ids.map((id) => id.toLowerCase());
  app.near = makeGrid(points, graph.n);
  app.scene = makeScene(byId('map'), points, graph);
  if (!app.scene) throw new Error('This browser has no WebGL2, with which the map is drawn; use a recent Firefox, Chrome, Edge or Safari.');
  app.camera = makeCamera();
  app.overlay = makeOverlay(byId('overlay'));
  let waiting = false, ratio = 1, before = 0, slow = 0, paintAll = () => {};
  // Where frames take long, the links of everything are left out as long as the map is moving.
  const frame = (now) => {
    waiting = false;
    slow = now - before < 1000 ? 0.7 * slow + 0.3 * (now - before) : 0;
    before = now;
    const more = app.camera.step(now), hasty = slow > 70 && (more || app.moving);
    paintAll(ratio, hasty);
    if (more) app.redraw();
    else if (hasty) { clearTimeout(app.later); app.later = setTimeout(() => { slow = 0; app.redraw(); }, 160); }
  };
  app.redraw = () => { if (!waiting) { waiting = true; requestAnimationFrame(frame); } };
  app.flyTo = (nodes, closest) => { app.camera.show(nodes.map((node) => [points[2 * node], points[2 * node + 1]]), closest); app.redraw(); };
  app.state = makeState(app);
  app.theme = readTheme();
  app.state.threshold = app.state.usual();

  const resize = () => {
    ratio = Math.min(2, window.devicePixelRatio || 1);
    const [width, height] = [window.innerWidth, window.innerHeight];
    for (const canvas of [byId('map'), byId('overlay')]) { canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio); }
    const wide = width > 900;
    app.camera.resize(width, height, wide ? { left: 322, right: 486, top: 16, bottom: 16 } : { left: 16, right: 60, top: 150, bottom: height * 0.48 });
    app.redraw();
  };
  window.addEventListener('resize', resize);
  resize();
  app.camera.fit(true);

  byId('title').textContent = short(meta.title, 90);
  byId('facts').textContent = `${count(graph.n, 'node')} · ${count(meta.num_links, 'link')}`;
  byId('overlay').setAttribute('aria-label', `Map of ${count(graph.n, 'node')}`);
  const repaint = makeLegend(app);
  paintAll = makePainter(app);
  makeTools(app);
  makeSearch(app);
  makeNodePanel(app);
  makePairPanel(app);
  makeNewLinks(app);
  makeNodeList(app);
  makeAbout(app);
  makePointer(app);
  makeTabs(app);
  repaint();
  byId('map').addEventListener('webglcontextlost', (event) => { event.preventDefault(); byId('notice').textContent = 'The graphics card has dropped the map; load the page again.'; });
  byId('notice').textContent = '';
  document.body.classList.remove('loading');
  app.redraw();
  window.vgae = offered(app, () => { paintAll(ratio); app.scene.gl.readPixels(0, 0, 1, 1, app.scene.gl.RGBA, app.scene.gl.UNSIGNED_BYTE, new Uint8Array(4)); });
}

/** What a script, or somebody at the console, can ask of the page. */
function offered(app, drawNow) {
  const { scores, state, camera, points } = app;
  return {
    ids: app.ids,
    logit: scores.logit,
    probability: scores.probability,
    spread: scores.spread,
    predict: (i, options) => scores.predict(i, options).best,
    known: (i, j) => knownOf(app.graph, i, j),
    choose: (i) => state.choose(i),
    pair: (i, j) => state.pair(i, j),
    screen: (i) => camera.toScreen(points[2 * i], points[2 * i + 1]),
    chosen: () => [state.chosen, state.second],
    hovered: () => state.hovered,
    drawn: () => linksOfChoice(app).map(({ from, to, kind }) => [from, to, kind]),
    selected: () => (state.selection ? state.selection.nodes : []),
    frame: () => { const begun = performance.now(); drawNow(); return performance.now() - begun; },
    settled: () => !camera.step(performance.now()),
  };
}

open().catch((error) => {
  byId('notice').textContent = `The page cannot be shown: ${error.message}`;
  console.error(error);
});
