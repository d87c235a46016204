// ------------------------------------------------------------------------------------------------------------ search by id

const MOST_FOUND = 30;

/** The nodes whose id holds a text: those that are it first, then those that begin with it. */
function findIds(lowered, text, most = MOST_FOUND) {
  const wanted = text.trim().toLowerCase(), kinds = [[], [], []];
  if (!wanted) return [];
  for (let i = 0; i < lowered.length; i++) {
    const at = lowered[i].indexOf(wanted);
    if (at < 0) continue;
    const kind = at > 0 ? 2 : lowered[i].length === wanted.length ? 0 : 1;
    if (kinds[kind].length < most) kinds[kind].push(i);
  }
  return kinds.flat().slice(0, most);
}

function makeSearch(app) {
  const input = byId('search'), list = byId('found');
  let found = [], active = -1;

  const close = () => { list.hidden = true; active = -1; input.setAttribute('aria-expanded', 'false'); input.removeAttribute('aria-activedescendant'); };
  const mark = (place) => {
    active = place;
    [...list.children].forEach((item, m) => item.setAttribute('aria-selected', String(m === place)));
    if (place < 0) return;
    input.setAttribute('aria-activedescendant', `found-${place}`);
    list.children[place].scrollIntoView({ block: 'nearest' });
  };
  const take = (place, asSecond) => {
    const node = found[place];
    close();
    input.value = '';
    if ((asSecond || app.state.picking) && app.state.chosen !== null) app.state.pair(app.state.chosen, node);
    else app.state.choose(node);
    byId(`view-${app.state.tab}`).focus({ preventScroll: true });
  };

  function look() {
    found = findIds(app.lowered, input.value);
    if (!input.value.trim()) { close(); return; }
    list.replaceChildren(...(found.length ? found.map((node, place) => make('li', {
      id: `found-${place}`, attributes: { role: 'option' }, aria: { selected: 'false' },
      on: { pointerdown: (event) => event.preventDefault(), click: (event) => take(place, event.shiftKey), pointermove: () => active !== place && mark(place) },
    }, named(app.ids[node]), make('span', { className: 'soft small' }, count(app.graph.degree[node], 'link'))))
      : [make('li', { className: 'none', attributes: { role: 'option', 'aria-disabled': 'true' } }, 'No id holds this text.')]));
    list.hidden = false;
    input.setAttribute('aria-expanded', 'true');
    mark(found.length ? 0 : -1);
  }

  input.addEventListener('input', look);
  input.addEventListener('focus', look);
  input.addEventListener('blur', close);
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') { if (input.value) event.stopPropagation(); input.value = ''; close(); }
    else if (!found.length || list.hidden) return;
    else if (event.key === 'ArrowDown') mark((active + 1) % found.length);
    else if (event.key === 'ArrowUp') mark((active + found.length - 1) % found.length);
    else if (event.key === 'Enter' && active >= 0) take(active, event.shiftKey);
    else return;
    event.preventDefault();
  });
  app.state.listen(['picking'], () => { input.placeholder = app.state.picking ? 'Search the second node' : 'Search a node by its id'; });
}
