// ------------------------------------------------------------------------------------------------------- colours and legend

function makeLegend(app) {
  const { state, ways } = app;
  const select = byId('colour');
  const groups = { label: 'Label', cluster: 'Cluster', degree: 'Degree', side: 'Side' };
  ways.forEach((way, place) => {
    const text = way.role === 'column' ? way.name : way.role === 'cluster' ? way.name.replace(/^c/, 'C') : groups[way.role];
    select.append(make('option', { value: String(place) }, beginning(text, 60)));
  });
  select.addEventListener('change', () => state.change({ way: Number(select.value), only: null }));

  function repaint() {
    const way = state.colouring();
    app.looks = paint(way, app.graph.n, state.theme, state.shapes);
    app.scene.setLooks(app.looks);
    app.places = way.kind === 'class' ? placesOfClasses(way, app.points, app.graph.n) : [];
    hide();
    show(way);
  }

  /** Nodes of classes that are switched off, and those outside a lasso, are all but hidden. */
  function hide() {
    const way = state.colouring(), n = app.graph.n, hidden = new Uint8Array(n);
    if (state.only && way.kind === 'class') for (let i = 0; i < n; i++) if (!state.only.has(way.placeOf[way.values[i]])) hidden[i] = 1;
    if (state.selection) for (let i = 0; i < n; i++) if (!state.selection.mask[i]) hidden[i] = 1;
    app.hidden = hidden;
    app.scene.setHidden(hidden);
  }

  function toggle(place, all) {
    const now = state.only ? new Set(state.only) : new Set();
    if (now.has(place)) now.delete(place); else now.add(place);
    state.change({ only: now.size && now.size < all ? now : null });
  }

  const strokes = () => {
    const line = (name, dashed) => draw('0 0 26 8', '', [['path', { d: 'M1 6C8 1 18 1 25 6', fill: 'none', stroke: `var(--${name})`, 'stroke-width': 1.8, 'stroke-dasharray': dashed ? '4 3' : 'none' }]]);
    const rows = [['known', false, 'known link'], ['held', false, 'known, held out from training'], ['predicted', true, 'predicted link']];
    return make('div', { className: 'strokes small soft' }, rows.map(([name, dashed, text]) => make('div', {}, line(name, dashed), make('span', {}, text))));
  };

  function show(way) {
    const card = byId('legend');
    if (way.kind === 'class') {
      const rows = way.classes.map((each, place) => make('li', {}, make('button', {
        type: 'button', title: 'Show this class alone, or with others that are pressed',
        aria: { pressed: String(!state.only || state.only.has(place)) }, on: { click: () => toggle(place, way.classes.length) },
      }, markOf(hueOf(way, place, state.theme), shapeOf(way, place, state.shapes)), named(each.name), make('span', { className: 'soft small' }, NUMBER.format(each.num)))));
      const shapes = make('label', { className: 'check' }, make('input', { type: 'checkbox', checked: state.shapes, on: { change: (event) => state.change({ shapes: event.target.checked }) } }), 'shapes');
      refill(card, [make('h3', {}, named(way.role === 'label' ? 'Label' : way.name), shapes), make('ul', {}, rows), strokes()]);
      return;
    }
    const ramp = make('canvas', { className: 'ramp', width: 264, height: 1, aria: { hidden: 'true' } });
    const context = ramp.getContext('2d');
    for (let x = 0; x < 264; x++) { context.fillStyle = `rgb(${rampAt(x / 263, state.theme)})`; context.fillRect(x, 0, 1, 1); }
    const note = way.logarithm ? 'on a logarithmic scale' : way.missing ? `${count(way.missing, 'node')} without a value in grey` : '';
    refill(card, [
      make('h3', {}, named(way.role === 'degree' ? 'Degree (known links)' : way.name)), ramp,
      make('div', { className: 'ends small soft' }, make('span', {}, figure(way.low)), make('span', {}, note), make('span', {}, figure(way.high))), strokes(),
    ]);
  }

  state.listen(['way', 'theme', 'shapes'], repaint);
  state.listen(['only', 'selection'], () => { hide(); show(state.colouring()); });
  return repaint;
}
