// ---------------------------------------------------------------------- elements: text goes in as text, never as markup

const byId = (id) => document.getElementById(id);
const SVG = 'http://www.w3.org/2000/svg';

/** An element with properties, attributes (as in {aria: {label: …}}) and children, which are elements or text. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'on') for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (name === 'aria') for (const [key, held] of Object.entries(value)) element.setAttribute('aria-' + key, held);
    else if (name === 'attributes') for (const [key, held] of Object.entries(value)) element.setAttribute(key, held);
    else element[name] = value;
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Put other children into an element. Whoever was at one of its controls is at the same one again, or else at the beginning. */
function refill(parent, children, fresh = false) {
  const controls = () => [...parent.querySelectorAll('button, input, select')].filter((each) => !each.disabled);
  const nameOf = (control) => control.id || control.getAttribute('aria-label');
  const held = document.activeElement, place = controls().indexOf(held);
  parent.replaceChildren(...children);
  if (place < 0) return;
  const now = controls(), same = nameOf(held) ? now.find((each) => nameOf(each) === nameOf(held)) : now[place];
  const next = (!fresh && same) || parent.closest('[tabindex]') || now[0];
  if (next) next.focus({ preventScroll: true });
}

/** A drawing; `parts` are tags with their attributes. */
function draw(box, className, parts) {
  const picture = document.createElementNS(SVG, 'svg');
  picture.setAttribute('viewBox', box);
  picture.setAttribute('class', className);
  picture.setAttribute('aria-hidden', 'true');
  for (const [tag, attributes] of parts) {
    const part = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) part.setAttribute(name, value);
    picture.append(part);
  }
  return picture;
}

/** A text of a stranger: on its own, whatever direction it is written in, and cut where it is very long. */
const named = (text, className = 'name') => make('bdi', { className, title: beginning(text) }, beginning(text));

/** The sign of a class in its colour, as on the map. */
function markOf(colour, shape = 0) {
  const paths = [
    ['circle', { cx: 7, cy: 7, r: 5.4 }], ['path', { d: 'M7 .8 13.2 7 7 13.2 .8 7Z' }], ['rect', { x: 2, y: 2, width: 10, height: 10 }],
    ['path', { d: 'M7 1.5 13 12H1Z' }], ['path', { d: 'M5 1h4v4h4v4H9v4H5V9H1V5h4Z' }],
  ];
  const [tag, attributes] = paths[shape];
  return draw('0 0 14 14', 'mark', [[tag, { ...attributes, fill: colour }]]);
}

const ARROW = () => draw('0 0 20 20', 'icon', [['path', { d: 'M4 10h11M11 5.5l4.5 4.5-4.5 4.5' }]]);

/** A bar of a share between 0 and 1. */
function bar(share, className = '') {
  const inner = make('i');
  inner.style.width = `${Math.max(1.5, 100 * Math.min(1, share))}%`;
  return make('span', { className: `bar ${className}`, aria: { hidden: 'true' } }, inner);
}

/** Buttons of which one is pressed. */
function choice(label, options, chosen, choose) {
  const buttons = options.map(([value, text]) => make('button', {
    type: 'button', aria: { pressed: String(value === chosen) }, on: { click: () => choose(value) },
  }, text));
  return make('div', { className: 'switch', attributes: { role: 'group' }, aria: { label } }, buttons);
}

/** Rows as a csv file, which the browser saves. */
function saveCsv(name, columns, rows, safe = false) {
  const field = (value) => {
    let text = String(value);
    if (safe && typeof value === 'string' && /^[=+\-@\t\r\n＝＋－＠]/.test(text)) text = "'" + text;
    return text && text === text.trim() && !/[,;|"\t\r\n]/.test(text) ? text : '"' + text.replaceAll('"', '""') + '"';
  };
  const lines = [columns, ...rows].map((row) => row.map(field).join(',') + '\n');
  const address = URL.createObjectURL(new Blob(lines, { type: 'text/csv;charset=utf-8' }));
  const link = make('a', { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** Say something to those who listen to the page. */
const say = (text) => { byId('said').textContent = text; };
