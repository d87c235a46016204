// --------------------------------------------------------------------------------------- two nodes: how likely a link is, and why

function makePairPanel(app) {
  const { state, scores, evidence, graph } = app, view = byId('view-pair');
  let shown = '';
  const go = (node) => make('button', { type: 'button', title: 'Go to this node', on: { click: () => state.choose(node) } }, named(app.ids[node], ''));

  function reasons(title, words, found, share, value) {
    const most = Math.max(...found.map((each) => Math.abs(share(each))), 1e-12);
    return make('div', { className: 'block' }, make('h3', {}, title), words ? make('p', { className: 'small soft' }, words) : null,
      found.length ? make('ul', { className: 'reasons' }, found.map((each) => make('li', {}, make('span', { className: 'name' }, each.label), bar(Math.abs(share(each)) / most), make('span', {}, value(each))))) : null);
  }

  /** What each dimension adds, to either side of a middle line. */
  function dimensions(i, j) {
    const all = scores.parts(i, j), found = all.slice(0, 6), most = Math.max(...found.map((each) => Math.abs(each.adds)), 1e-12);
    const rest = all.slice(6).reduce((sum, each) => sum + each.adds, 0);
    if (all.length > 6) found.push({ name: `${all.length - 6} others`, adds: rest });
    return make('div', { className: 'block' }, make('h3', {}, `Decoder: the logit ${figure(Number(scores.logit(i, j).toFixed(3)))} is the sum of`),
      make('ul', { className: 'reasons' }, found.map((each) => {
        const inner = make('i', { className: each.adds < 0 ? 'minus' : '' });
        const share = Math.min(50, (50 * Math.abs(each.adds)) / most);
        inner.style.width = `${share}%`;
        inner.style.left = `${each.adds < 0 ? 50 - share : 50}%`;
        return make('li', {}, make('span', { className: 'name' }, each.name), make('span', { className: 'two', aria: { hidden: 'true' } }, inner), make('span', {}, (each.adds < 0 ? '−' : '+') + Math.abs(each.adds).toFixed(2)));
      })));
  }

  function chance(i, j, title) {
    const p = scores.probability(i, j), spread = scores.spread(i, j), known = knownOf(graph, i, j);
    const words = { train: 'A known link, which the model was trained on.', held_out: 'A known link, held out from training.', no: 'Not known: a link that could be new.' }[known];
    if (!scores.possible(i, j)) return make('p', {}, 'Both nodes are on the same side of a bipartite graph, where links go across.');
    return make('div', { className: 'block' }, title ? make('h3', {}, title) : null,
      make('p', { className: 'big', id: i === state.chosen ? 'probability' : 'probability-back' }, percent(p), spread ? make('small', {}, ` ${plusMinus(spread.std, p)}`) : null),
      make('p', { className: 'small soft' }, `${words} By the calibration, ${odds(p)}.`));
  }

  function build() {
    const [i, j] = [state.chosen, state.second];
    if (i === null || j === null) {
      const start = state.chosen === null ? 'Choose a node first' : `${short(app.ids[i], 60)} is chosen`;
      refill(view, [make('div', { className: 'empty' }, make('p', {}, `${start}, then a second one: click on it with Shift held down, or press “Compare” and search for it.`), make('p', {}, 'You get the probability of a link between them, their common neighbours, and what speaks for it.'))]);
      return;
    }
    const common = evidence.neighbours(i, j, 8), paths = evidence.paths(i, j, 5), shared = evidence.shared(i, j, 8);
    const ends = [['A', i], ['B', j]].map(([letter, node]) => make('div', { className: 'end' }, make('b', {}, letter), make('span', { className: 'name' }, go(node))));
    refill(view, [make('div', { className: 'stack' },
      make('div', { className: 'ends2' }, make('div', { className: 'block' }, ends), make('button', { type: 'button', className: 'action', title: 'The other way round', aria: { label: 'Swap the two nodes' }, on: { click: () => state.pair(j, i) } }, '⇅')),
      ...(app.meta.symmetric ? [chance(i, j, '')] : [chance(i, j, 'From A to B'), chance(j, i, 'From B to A')]),
      make('h2', {}, 'Why'),
      reasons(count(common.num, 'common neighbour'), common.num ? 'Those with few links say more: 1 / log(degree).' : 'No node is linked to both.',
        common.found.map((each) => ({ ...each, label: go(each.node) })), (each) => each.adds, (each) => each.adds.toFixed(2)),
      reasons(count(paths.num, 'path') + ' over two nodes', paths.num ? '' : 'There is no path of length three.',
        paths.found.map((each) => ({ ...each, label: make('span', {}, go(each.nodes[0]), ' – ', go(each.nodes[1])) })), (each) => each.adds, (each) => String(Number(each.adds.toPrecision(2)))),
      shared ? reasons(count(shared.num, 'shared feature'), `${shared.complete ? 'Cosine' : 'Of the strongest features of each: cosine'} ${shared.cosine.toFixed(2)}, by rare features more than by common ones.`,
        shared.found.map((each) => ({ ...each, label: named(each.name, '') })), (each) => each.adds, (each) => each.adds.toFixed(3)) : null,
      dimensions(i, j))]);
    if (shown !== `${i} ${j}`) view.scrollTop = 0;
    shown = `${i} ${j}`;
  }
  state.listen(['chosen', 'second', 'theme'], build);
  build();
}
