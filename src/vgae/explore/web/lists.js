// --------------------------------------------------------------------------- tables: new links, all nodes, what is in a lasso

/** A table with columns {name, title, right, width, value, cell}; a click on a head sorts by it. */
function makeTable(columns, rows, { caption, sort, rowClass, onSort }) {
  const [by, down] = sort;
  const head = columns.map((column, place) => make('th', {
    scope: 'col', className: column.right ? 'right' : '', aria: { sort: place === by ? (down ? 'descending' : 'ascending') : 'none' },
  }, make('button', { type: 'button', title: column.title || '', on: { click: () => onSort([place, place === by ? !down : Boolean(column.right)]) } }, column.name)));
  const body = rows.map((row) => make('tr', { className: rowClass ? rowClass(row) : '' }, columns.map((column) => make('td', { className: column.right ? 'right' : '' }, column.cell(row)))));
  const widths = columns.map((column) => { const made = make('col'); if (column.width) made.style.width = column.width; return made; });
  return make('table', {}, make('caption', { className: 'unseen' }, caption), make('colgroup', {}, widths), make('thead', {}, make('tr', {}, head)), make('tbody', {}, body));
}

const COLLATOR = new Intl.Collator(undefined, { numeric: true });

function sorted(rows, columns, [by, down]) {
  const value = columns[by].value, way = down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    return (typeof x === 'string' ? COLLATOR.compare(x, y) : x - y) * way || a.place - b.place;
  });
}

function safeBox(app) {
  const input = make('input', { type: 'checkbox', checked: app.safe, on: { change: (event) => { app.safe = event.target.checked; } } });
  return make('label', { className: 'check', title: 'Ids that a spreadsheet would run as formulas begin with an apostrophe' }, input, 'safe for spreadsheets');
}

function makeNewLinks(app) {
  const { state, scores, sections } = app, view = byId('view-new'), pairs = sections.best_pairs, rows = [];
  for (let m = 0; 2 * m < pairs.length; m++) {
    const [i, j] = [pairs[2 * m], pairs[2 * m + 1]], spread = scores.spread(i, j);
    rows.push({ place: m, i, j, p: sections.best_probabilities[m], logit: sections.best_logits[m], std: spread ? spread.std : null, common: app.evidence.neighbours(i, j, 0).num });
  }
  const open = (row) => make('button', { type: 'button', className: 'both', title: 'Look at this pair', on: { click: () => state.pair(row.i, row.j) } },
    named(app.ids[row.i]), make('span', { className: 'unseen' }, app.meta.directed ? ' to ' : ' and '), named(app.ids[row.j]));
  const columns = [
    { name: '#', width: '38px', right: false, value: (row) => row.place, cell: (row) => make('span', { className: 'soft' }, String(row.place + 1)) },
    { name: app.meta.directed ? 'From and to' : 'Nodes', value: (row) => `${app.ids[row.i]} ${app.ids[row.j]}`, cell: open },
    { name: 'Link', title: 'Probability of a link', width: '68px', right: true, value: (row) => row.p, cell: (row) => make('span', {}, percent(row.p)) },
    { name: 'CN', title: 'Common neighbours', width: '42px', right: true, value: (row) => row.common, cell: (row) => make('span', { className: 'soft' }, String(row.common)) },
  ];
  if (app.meta.noise) columns.splice(3, 0, { name: '±', title: 'Spread over the posterior, in points of percent', width: '50px', right: true, value: (row) => row.std, cell: (row) => make('span', { className: 'soft' }, plusMinus(row.std, row.p).slice(2)) });
  let sort = [0, false];

  function build() {
    const order = sorted(rows, columns, sort);
    const save = () => saveCsv('new-links.csv', ['source', 'target', 'probability', 'logit', ...(app.meta.noise ? ['std'] : []), 'common_neighbours'],
      order.map((row) => [app.ids[row.i], app.ids[row.j], Number(row.p.toPrecision(6)), Number(row.logit.toPrecision(6)), ...(app.meta.noise ? [Number(row.std.toPrecision(6))] : []), row.common]), app.safe);
    refill(view, [make('div', { className: 'stack' },
      make('div', { className: 'block' }, make('h2', {}, 'Best new links'), make('p', { className: 'soft small' }, `The ${count(rows.length, 'pair')} of the whole graph that the model ranks highest and that ${rows.length === 1 ? 'is' : 'are'} not known. Choose one to see why.`)),
      make('div', { className: 'spread' }, make('button', { type: 'button', className: 'action', id: 'save-new', on: { click: save } }, 'Save as CSV'), safeBox(app)),
      makeTable(columns, order, { caption: 'Best new links of the whole graph', sort, onSort: (next) => { sort = next; build(); }, rowClass: (row) => (state.chosen === row.i && state.second === row.j ? 'on' : '') }))]);
  }
  state.listen(['second'], build);
  build();
}

const PAGE = 100;

function makeNodeList(app) {
  const { state, graph } = app, view = byId('view-nodes');
  const labels = app.columns.find((column) => column.role === 'label' && column.kind !== 'number');
  const columns = [
    { name: 'Node', value: (row) => app.ids[row.place], cell: (row) => make('button', { type: 'button', on: { click: () => state.choose(row.place) } }, named(app.ids[row.place])) },
    { name: 'Links', width: '64px', right: true, value: (row) => graph.degree[row.place], cell: (row) => make('span', { className: 'soft' }, NUMBER.format(graph.degree[row.place])) },
  ];
  const labelOf = (i) => (labels.values[i] ? labels.texts[labels.values[i] - 1] : '');
  if (labels) columns.splice(1, 0, { name: 'Label', value: (row) => labelOf(row.place), cell: (row) => make('span', { className: 'soft' }, named(labelOf(row.place))) });
  let sort = [columns.length - 1, true], text = '', page = 0;
  const filter = make('input', { type: 'text', placeholder: 'Ids that hold …', aria: { label: 'Only ids that hold this text' }, on: { input: (event) => { text = event.target.value; page = 0; fill(); } } });
  const body = make('div', { className: 'stack' });

  function rowsNow() {
    const rows = [], wanted = text.trim().toLowerCase();
    for (let i = 0; i < graph.n; i++) if ((!state.selection || state.selection.mask[i]) && (!wanted || app.lowered[i].includes(wanted))) rows.push({ place: i });
    return sorted(rows, columns, sort);
  }

  /** What a lasso has caught: classes and links inside. */
  function mixture() {
    const { nodes, mask } = state.selection, way = app.ways.find((each) => each.kind === 'class');
    let within = 0;
    for (let m = 0; m < graph.targets.length; m++) within += mask[graph.sources[m]] & mask[graph.targets[m]];
    const list = make('ul', { className: 'mix' });
    if (way) {
      const counts = way.classes.map((each, place) => ({ ...each, place, held: 0 }));
      for (const i of nodes) counts[way.placeOf[way.values[i]]].held++;
      for (const each of counts.filter((one) => one.held).sort((a, b) => b.held - a.held).slice(0, 8)) {
        list.append(make('li', {}, markOf(hueOf(way, each.place, state.theme), shapeOf(way, each.place, state.shapes)), named(each.name), bar(each.held / nodes.length, 'known'), make('span', {}, NUMBER.format(each.held))));
      }
    }
    return make('div', { className: 'block' }, make('h2', { id: 'caught' }, `${count(nodes.length, 'node')} in the lasso`), make('p', { className: 'soft small' }, `${count(within, 'known link')} between them.`), list,
      make('div', { className: 'actions' }, make('button', { type: 'button', className: 'action', on: { click: () => state.change({ selection: null }) } }, 'Clear the lasso')));
  }

  function save() {
    saveCsv('nodes.csv', ['node', ...(labels ? ['label'] : []), 'links'], rowsNow().map((row) => [app.ids[row.place], ...(labels ? [labelOf(row.place)] : []), graph.degree[row.place]]), app.safe);
  }

  function fill() {
    const rows = rowsNow(), pages = Math.max(1, Math.ceil(rows.length / PAGE));
    page = Math.min(page, pages - 1);
    const turn = (by, label, words) => make('button', { type: 'button', className: 'action', disabled: page + by < 0 || page + by >= pages, aria: { label: words }, on: { click: () => { page += by; fill(); } } }, label);
    refill(body, [
      makeTable(columns, rows.slice(page * PAGE, page * PAGE + PAGE), { caption: 'Nodes', sort, onSort: (next) => { sort = next; page = 0; fill(); }, rowClass: (row) => (row.place === state.chosen ? 'on' : '') }),
      make('div', { className: 'pages small soft' }, turn(-1, '←', 'Previous page'), make('span', { attributes: { role: 'status' } }, `${count(rows.length, 'node')}, page ${page + 1} of ${pages}`), turn(1, '→', 'Next page'))]);
  }

  function build() {
    refill(view, [make('div', { className: 'stack' }, state.selection ? mixture() : make('div', { className: 'block' }, make('h2', {}, 'Nodes'), make('p', { className: 'soft small' }, 'All nodes as a list, in place of the map. The lasso narrows it down.')),
      make('div', { className: 'block' }, filter, make('div', { className: 'spread' }, make('button', { type: 'button', className: 'action', id: 'save-nodes', on: { click: save } }, 'Save as CSV'), safeBox(app))), body)]);
    fill();
  }
  let built = false;
  state.listen(['selection', 'theme', 'shapes'], () => { if (built || state.selection) { built = true; page = 0; build(); } });
  state.listen(['tab'], () => { if (state.tab === 'nodes' && !built) { built = true; build(); } });
  state.listen(['chosen'], () => { if (built && state.tab === 'nodes') fill(); });
}

function makeAbout(app) {
  const { meta } = app, { calibration } = meta;
  const words = calibration.logits.length
    ? `Probabilities are calibrated by ${count(calibration.num_links, 'validation link')}${calibration.rough ? ', so few that they can be off by a factor of two' : ''}: of all pairs with 10 %, about one in ten is a link. At the top of the list they are all the same, where there are too few validation links to tell more.`
    : 'Probabilities are not calibrated, because no validation links were held out: they are those of the loss, with its weight taken back.';
  const spread = meta.noise ? 'The number after ± is the spread of a probability over the posterior: how unsure the model is of its embeddings.' : 'This model has no posterior whose spread could be shown, or none that this page knows.';
  const keys = [['/', 'search'], ['arrows', 'move the map'], ['+ −', 'zoom'], ['0', 'show everything'], ['N P', 'next and previous node near the middle'], ['Enter', 'choose it; with Shift as the second one'], ['Shift + click', 'second node of a pair'], ['L', 'lasso'], ['K', 'all known links'], ['T', 'names'], ['D', 'light or dark'], ['Esc', 'clear']];
  byId('view-about').replaceChildren(make('div', { className: 'stack' },
    make('div', { className: 'block' }, make('h2', {}, 'This model'), describe(meta.about)),
    make('div', { className: 'block' }, make('h2', {}, 'The map'), make('p', { className: 'small' }, `${meta.map} Distances on the map are a hint; probabilities are computed from all ${meta.dim} dimensions.`)),
    make('div', { className: 'block' }, make('h2', {}, 'Probabilities'), make('p', { className: 'small' }, words), make('p', { className: 'small' }, spread), make('p', { className: 'small' }, `This page computes them itself, from the factors of the decoder, rounded so that a logit changes by about ${meta.step.toFixed(6)}.`)),
    make('div', { className: 'block' }, make('h2', {}, 'Keys'), make('div', { className: 'keys' }, keys.flatMap(([key, text]) => [make('span', {}, make('kbd', {}, key)), make('span', {}, text)]))),
    make('p', { className: 'small soft' }, 'Everything is in this file. It asks for nothing from the network, and nothing that you do here leaves your browser.')));
}
