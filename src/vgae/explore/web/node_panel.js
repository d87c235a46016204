// ---------------------------------------------------------------------------------------------- a node: facts and predictions

/** What there is to say about a node beside its links: [name, text], labels and clusters first. */
function factsOf(app, i) {
  const found = [];
  for (const column of app.columns) {
    if (column.role !== 'column') continue;
    const value = column.values[i];
    found.push([column.name, column.kind === 'number' ? figure(value) : value ? column.texts[value - 1] : '–']);
  }
  return found;
}

function chipsOf(app, i) {
  const chips = [];
  for (const way of app.ways) {
    if (!['label', 'cluster', 'side'].includes(way.role) || !way.values[i]) continue;
    const place = way.placeOf[way.values[i]];
    chips.push(make('span', { className: 'chip' }, markOf(hueOf(way, place, app.state.theme), shapeOf(way, place, app.state.shapes)), named(way.texts[way.values[i] - 1])));
  }
  return chips;
}

const describe = (pairs) => make('dl', { className: 'pairs' }, pairs.flatMap(([name, text]) => [make('dt', { title: beginning(name) }, named(name, '')), make('dd', {}, typeof text === 'string' ? named(text, '') : text)]));

function degreeWords(app, i) {
  const { graph } = app;
  if (!graph.directed) return count(graph.degree[i], 'link');
  const [out, into] = [rowOf(graph.out, i).length, rowOf(graph.into, i).length];
  return `${NUMBER.format(out)} out, ${NUMBER.format(into)} in`;
}

const topFeatures = (app, i, most) => (app.meta.features && !app.meta.features.by_columns ? app.evidence.features(i, most) : [])
  .map(({ name, value }) => (app.meta.features.constant === null ? `${name} (${figure(value)})` : name)).join(', ');

/** The card beside the pointer. */
function hoverCard(app, i) {
  const facts = [['degree', degreeWords(app, i)]];
  for (const column of app.columns) if (column.role === 'label' && column.kind !== 'number') facts.unshift(['label', column.values[i] ? column.texts[column.values[i] - 1] : 'none']);
  for (const column of app.columns) if (column.role === 'cluster') facts.push(['cluster', column.texts[column.values[i] - 1].replace('cluster ', '')]);
  facts.push(...factsOf(app, i).slice(0, 6));
  const features = topFeatures(app, i, 5);
  if (features) facts.push(['features', beginning(features, 160)]);
  if (app.state.chosen !== null && app.state.chosen !== i && app.scores.possible(app.state.chosen, i)) facts.push(['link to the chosen', percent(app.scores.probability(app.state.chosen, i))]);
  return [make('div', { className: 'id' }, named(app.ids[i], '')), describe(facts)];
}

const BADGES = { train: ['known', 'known'], held_out: ['held out', 'held'], no: null };

/** A line of a list of links: it opens the pair; the arrow goes to the node. */
function linkRow(app, other, p, std, known, open) {
  const badge = BADGES[known];
  const point = (node) => () => { app.pointed = node !== null; app.state.change({ hovered: node }); };
  return make('li', { on: { pointerenter: point(other), pointerleave: point(null), focusin: point(other), focusout: point(null) } },
    make('button', { type: 'button', className: 'open', title: 'Look at this pair', on: { click: open } },
      make('span', { className: 'who' }, named(app.ids[other]), badge && make('span', { className: `badge ${badge[1]}` }, badge[0])),
      make('span', { className: 'number' }, percent(p), std === null ? null : make('small', {}, ` ${plusMinus(std, p)}`)),
      bar(barShare(app, p), badge ? badge[1] : '')),
    make('button', { type: 'button', className: 'go', title: 'Go to this node', aria: { label: `Go to ${short(app.ids[other], 60)}` }, on: { click: () => app.state.choose(other) } }, ARROW()));
}

/** The length of a probability's bar: on the scale of log odds, as the slider has it. */
function barShare(app, p) {
  const { low, high } = app.scores.range();
  return (Math.log(p / (1 - p)) - low) / (high - low);
}

function makeNodePanel(app) {
  const { state, scores, graph } = app, view = byId('view-node');
  const STEPS = 1000;
  const toThreshold = (step) => { const { low, high } = scores.range(); return step === 0 ? 0 : scores.sigmoid(low + ((high - low) * step) / STEPS - 1e-9); };
  const toStep = (p) => { const { low, high } = scores.range(); return p <= 0 ? 0 : Math.max(0, Math.min(STEPS, Math.round((STEPS * (Math.log(p / (1 - p)) - low)) / (high - low)))); };
  let shown = null, parts = null;

  function histogram() {
    const { bins } = state.predicted, most = Math.log1p(Math.max(...bins)) || 1, cut = (BINS * toStep(state.threshold)) / STEPS;
    return draw(`0 0 ${BINS * 6} 34`, '', Array.from(bins, (held, m) => {
      const height = held ? 3 + (30 * Math.log1p(held)) / most : 0.8;
      return ['rect', { x: m * 6, y: 34 - height, width: 5, height, rx: 1, class: m + 0.5 >= cut ? 'in' : '' }];
    }));
  }

  function rows() {
    const i = state.chosen, back = state.direction === 'in';
    const { best, reached } = state.predicted;
    const spread = (j) => { const found = back ? scores.spread(j, i) : scores.spread(i, j); return found ? found.std : null; };
    parts.list.replaceChildren(...best.map((each) => linkRow(app, each.node, each.p, spread(each.node), each.known, () => (back ? state.pair(each.node, i) : state.pair(i, each.node)))));
    const noun = { new: ['new link', 'new links'], known: ['known link', 'known links'], all: ['pair', 'pairs'] }[state.wanted];
    const reach = state.threshold > 0 ? ` with ${percent(state.threshold)} or more` : '';
    parts.words.replaceChildren(reached > best.length ? `The best ${best.length} of ${count(reached, ...noun)}${reach}` : `${count(reached, ...noun)}${reach}`);
    parts.threshold.textContent = state.threshold > 0 ? percent(state.threshold) : 'any';
    parts.slider.value = String(toStep(state.threshold));
    parts.slider.setAttribute('aria-valuetext', parts.threshold.textContent);
    parts.chart.replaceChildren(histogram());
    parts.none.replaceChildren();
    if (!best.length) {
      const next = scores.predict(i, { direction: state.direction, wanted: state.wanted, most: 10 }).best;
      if (next.length && state.threshold > 0) parts.none.append(make('p', { className: 'soft' }, `The most likely one has ${percent(next[0].p)}. `, make('button', { type: 'button', className: 'link', on: { click: () => state.change({ threshold: toThreshold(Math.max(0, toStep(next[next.length - 1].p) - 1)) }) } }, 'Show the best ten')));
    }
  }

  function build() {
    const i = state.chosen, fresh = shown !== i;
    shown = i;
    if (i === null) {
      parts = null;
      refill(view, [make('div', { className: 'empty' }, make('p', {}, 'Choose a node: click on the map, search by id, or take one from the tab Nodes.'), make('p', {}, 'Its known links are drawn, and those that the model predicts, with their probabilities.'))]);
      return;
    }
    const slider = make('input', { type: 'range', min: '0', max: String(STEPS), id: 'threshold', on: { input: (event) => state.change({ threshold: toThreshold(Number(event.target.value)) }) } });
    parts = { slider, list: make('ul', { className: 'links', id: 'predicted' }), words: make('h3', { attributes: { role: 'status' } }), threshold: make('span', { className: 'number' }), chart: make('div'), none: make('div') };
    const features = topFeatures(app, i, 12), facts = [['Known links', degreeWords(app, i)], ...factsOf(app, i)];
    const controls = make('div', { className: 'spread' });
    const refresh = () => refill(controls, [
      choice('Which links', [['new', 'New'], ['known', 'Known'], ['all', 'All']], state.wanted, (wanted) => { state.change({ wanted, threshold: wanted === 'known' ? 0 : state.threshold }); refresh(); }),
      app.meta.symmetric ? '' : choice('Direction', [['out', 'Outgoing →'], ['in', '← Incoming']], state.direction, (direction) => { state.change({ direction }); refresh(); })]);
    refresh();
    refill(view, [make('div', { className: 'stack' },
      make('div', { className: 'block' }, make('h2', { className: 'id' }, named(app.ids[i], '')), make('div', { className: 'chips' }, chipsOf(app, i)), describe(facts)),
      features ? make('div', { className: 'block' }, make('h3', {}, 'Strongest features'), make('p', { className: 'small' }, named(features, ''))) : null,
      make('div', { className: 'actions' },
        make('button', { type: 'button', className: 'action', id: 'compare', title: 'Choose a second node, to look at the pair', on: { click: () => { state.change({ picking: !state.picking }); byId('search').focus(); } } }, 'Compare'),
        make('button', { type: 'button', className: 'action', on: { click: () => app.flyTo([i], 12) } }, 'Zoom in'),
        make('button', { type: 'button', className: 'action', id: 'save-predicted', on: { click: save } }, 'Save as CSV')),
      make('div', { className: 'block' }, make('h2', {}, 'Predicted links'), controls,
        make('div', { className: 'slider' }, make('div', { className: 'spread small' }, make('label', { htmlFor: 'threshold', className: 'soft' }, 'Probability at least'), parts.threshold), parts.chart, slider)),
      make('div', { className: 'block' }, parts.words, parts.none, parts.list))], fresh);
    if (fresh) view.scrollTop = 0;
    rows();
  }

  function save() {
    const i = state.chosen, back = state.direction === 'in';
    const found = scores.predict(i, { direction: state.direction, wanted: state.wanted, least: state.threshold, most: 5000 }).best;
    const spread = (j) => (back ? scores.spread(j, i) : scores.spread(i, j));
    const withSpread = Boolean(app.meta.noise);
    saveCsv('predicted-links.csv', ['source', 'target', 'probability', 'logit', ...(withSpread ? ['std'] : []), 'known'], found.map((each) => [
      app.ids[back ? each.node : i], app.ids[back ? i : each.node], Number(each.p.toPrecision(6)), Number(each.logit.toPrecision(6)),
      ...(withSpread ? [Number(spread(each.node).std.toPrecision(6))] : []), each.known]), app.safe);
  }

  state.listen(['chosen', 'theme', 'shapes'], build);
  state.listen(['predicted'], () => { if (parts && shown === state.chosen) rows(); });
  // A row that goes away under the pointer cannot say that it was left.
  state.listen(['tab', 'chosen'], () => { if (app.pointed) { app.pointed = false; state.change({ hovered: null }); } });
  state.listen(['picking'], () => { const button = byId('compare'); if (button) button.classList.toggle('main', state.picking); });
  build();
}
