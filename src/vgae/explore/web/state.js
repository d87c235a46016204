// -------------------------------------------------------------------------------- what is chosen, and who is told of a change

const MOST_PREDICTED = 60; // predictions that are listed
const MOST_DRAWN = 30; // and drawn

/** The state of the page; `change` takes new values and tells those who listen for any of their names. */
function makeState(app) {
  const { graph, scores } = app;
  const listeners = [];
  const state = {
    way: 0, chosen: null, second: null, hovered: null, direction: 'out', wanted: 'new', threshold: 0.01,
    selection: null, only: null, tab: 'new', links: app.scene ? app.scene.linksAtFirst : false, names: true, shapes: false,
    theme: matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light', lasso: false, picking: false, predicted: null,
  };
  state.listen = (names, act) => listeners.push([names, act]);
  state.change = (values) => {
    const changed = Object.keys(values).filter((name) => state[name] !== values[name]);
    if (!changed.length) return;
    Object.assign(state, values);
    if (['chosen', 'direction', 'wanted', 'threshold'].some((name) => changed.includes(name))) { predict(); changed.push('predicted'); }
    for (const [names, act] of listeners) if (names.some((name) => changed.includes(name))) act(changed);
    app.redraw();
  };

  /** The threshold that a node in the middle reaches with fifteen of its predictions. */
  state.usual = () => {
    const heights = [], step = Math.max(1, Math.floor(graph.n / 25));
    for (let i = 0; i < graph.n; i += step) {
      const { best } = scores.predict(i, { most: 15 });
      if (best.length) heights.push(best[best.length - 1].p);
    }
    heights.sort((a, b) => a - b);
    return heights.length ? Number(heights[heights.length >> 1].toPrecision(1)) : 0;
  };

  function predict() {
    const { chosen, direction, wanted, threshold } = state;
    state.predicted = chosen === null ? null : scores.predict(chosen, { direction, wanted, least: threshold, most: MOST_PREDICTED });
  }

  /** Choose a node, and fly to it with those that it is or should be linked to. */
  state.choose = (node, { fly = true } = {}) => {
    state.change({ chosen: node, second: null, picking: false, tab: node === null ? state.tab : 'node' });
    if (node === null) return;
    if (fly) app.flyTo([node, ...rowOf(graph.near, node).slice(0, 40), ...state.predicted.best.slice(0, 12).map((each) => each.node)]);
    const best = state.predicted.best[0];
    say(`${short(app.ids[node], 80)} is chosen: ${count(graph.degree[node], 'link')}${best ? `, best prediction ${short(app.ids[best.node], 60)} with ${percent(best.p)}` : ''}.`);
  };

  /** Choose two nodes, to look at the pair. */
  state.pair = (first, second) => {
    if (first === second) return;
    state.change({ chosen: first, second, picking: false, tab: 'pair' });
    app.flyTo([first, second, ...app.evidence.neighbours(first, second, 12).found.map((each) => each.node)]);
    say(`Probability of a link between ${short(app.ids[first], 60)} and ${short(app.ids[second], 60)}: ${percent(scores.probability(first, second))}.`);
  };

  /** A click on a node: it is chosen or, with Shift or when a second one is looked for, it makes a pair. */
  state.take = (node, asSecond) => {
    if ((asSecond || state.picking) && state.chosen !== null && node !== state.chosen) state.pair(state.chosen, node);
    else state.choose(node, { fly: false });
  };

  state.clear = () => {
    if (state.picking) state.change({ picking: false });
    else if (state.second !== null) state.change({ second: null, tab: 'node' });
    else if (state.chosen !== null) { state.change({ chosen: null }); say('No node is chosen.'); }
    else if (state.selection) state.change({ selection: null });
    else state.change({ only: null });
  };

  /** The way that nodes are coloured by. */
  state.colouring = () => app.ways[state.way];
  return state;
}

/** The curves of what is chosen: {from, to, kind, p}. */
function linksOfChoice(app) {
  const { state, graph, evidence, scores } = app;
  const found = [];
  if (state.chosen === null) return found;
  if (state.second !== null) {
    const [i, j] = [state.chosen, state.second];
    const join = (from, to) => { if (!graph.directed || holds(graph.out, from, to)) found.push({ from, to, kind: 'train' }); };
    for (const { node } of evidence.neighbours(i, j, 40).found) {
      join(i, node);
      join(node, j);
      if (graph.directed) { join(node, i); join(j, node); }
    }
    const known = knownOf(graph, i, j);
    found.push({ from: i, to: j, kind: known === 'no' ? 'new' : known, p: scores.probability(i, j), strong: true });
    return found;
  }
  const i = state.chosen;
  const ways = graph.directed ? [[graph.out, graph.held, false], [graph.into, graph.heldInto, true]] : [[graph.near, graph.held, false]];
  for (const [links, held, back] of ways) {
    for (const [list, kind] of [[links, 'train'], [held, 'held_out']]) {
      for (const node of rowOf(list, i).slice(0, 300)) found.push(back ? { from: node, to: i, kind } : { from: i, to: node, kind });
    }
  }
  const back = state.direction === 'in';
  for (const each of state.predicted.best.filter((one) => one.known === 'no').slice(0, MOST_DRAWN)) {
    found.push({ from: back ? each.node : i, to: back ? i : each.node, kind: 'new', p: each.p });
  }
  return found;
}
