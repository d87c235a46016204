// ------------------------------------------------------------------------------------ colours that survive colour blindness

// The eight hues of Okabe and Ito, moved as little as keeps them apart for every kind of colour blindness on either paper.
const HUES = {
  light: ['#3078bc', '#da4708', '#069e70', '#d88ebe', '#eca625', '#6abbf2', '#be9e42', '#686d76'],
  dark: ['#4ca1e1', '#dd5f29', '#5ebb7e', '#cd82b3', '#e2a23d', '#6ec3ef', '#d3cc29', '#8b9787'],
};
const NONE = { light: '#b4b8b9', dark: '#4d565f' };
// Cividis (Nuñez, Anderton and Renslow, 2018), made to look alike with and without red-green blindness.
const RAMP = ['#00224e', '#123570', '#3b496c', '#575d6d', '#707173', '#8a8678', '#a59c74', '#c3b369', '#e1cc55', '#fee838'];
const CUT = { light: [0, 0.92], dark: [0.16, 1] };
const SHAPES = 5; // circle, diamond, square, triangle, cross
const MOST_SHOWN = 40; // classes that the legend lists; the others are one

const rgbOf = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** The ramp at a place between 0 and 1, as red, green and blue. */
function rampAt(place, theme) {
  const [from, to] = CUT[theme];
  const at = (from + (to - from) * Math.max(0, Math.min(1, place))) * (RAMP.length - 1);
  const low = Math.min(RAMP.length - 2, Math.floor(at)), part = at - low;
  const a = rgbOf(RAMP[low]), b = rgbOf(RAMP[low + 1]);
  return a.map((value, channel) => Math.round(value + part * (b[channel] - value)));
}

/** The ways to colour nodes: by class, or by number. */
function makeColourings(sections, meta, graph) {
  const found = meta.columns.map((column, place) => ({ ...column, values: sections[`column_${place}`] }));
  const offered = found.filter((column) => column.kind !== 'text');
  const links = { name: 'degree', role: 'degree', kind: 'number', values: Float32Array.from(graph.degree), logarithm: true };
  const ways = [...offered, links];
  if (graph.sides) {
    const sides = Uint8Array.from(graph.sides, (side) => side + 1);
    ways.push({ name: 'side', role: 'side', kind: 'class', values: sides, texts: ['first side', 'second side'] });
  }
  return { columns: found, ways: ways.map((way) => (way.kind === 'class' ? withClasses(way, graph.n) : withEnds(way))) };
}

/** A class column with its classes as the legend lists them, and for each node which of these it is in. */
function withClasses(way, n) {
  const counts = new Uint32Array(way.texts.length + 1);
  for (let i = 0; i < n; i++) counts[way.values[i]]++;
  const order = way.texts.map((_, place) => place + 1);
  const many = order.length > MOST_SHOWN;
  if (many) order.sort((a, b) => counts[b] - counts[a] || a - b);
  const shown = order.slice(0, many ? MOST_SHOWN - 1 : MOST_SHOWN);
  const classes = shown.map((code, place) => ({ name: way.texts[code - 1], num: counts[code], place }));
  const placeOf = new Int32Array(counts.length).fill(classes.length);
  shown.forEach((code, place) => { placeOf[code] = place; });
  const rest = n - classes.reduce((sum, each) => sum + each.num, 0);
  if (rest) classes.push({ name: many ? `${count(order.length - shown.length, 'other')}${counts[0] ? ' or none' : ''}` : 'none', num: rest, place: classes.length, other: true });
  return { ...way, classes, placeOf };
}

/** A number column with its ends; what lies beyond the outermost hundredth has the colour of the end. */
function withEnds(way) {
  const given = Array.from(way.values).filter(Number.isFinite).sort((a, b) => a - b);
  const at = (share) => (given.length ? given[Math.round(share * (given.length - 1))] : 0);
  const low = way.logarithm ? at(0) : at(0.01), high = way.logarithm ? at(1) : at(0.99);
  return { ...way, low, high: high > low ? high : low + 1, missing: way.values.length - given.length };
}

/** The place of a value on the ramp. */
function placeOn(way, value) {
  const scale = way.logarithm ? (x) => Math.log1p(x) : (x) => x;
  return (scale(value) - scale(way.low)) / (scale(way.high) - scale(way.low));
}

const hueOf = (way, place, theme) => (way.classes[place].other ? NONE[theme] : HUES[theme][place % HUES[theme].length]);
const shapeOf = (way, place, always) => (way.classes[place].other ? 0 : always ? place % SHAPES : Math.floor(place / HUES.light.length) % SHAPES);

/** Red, green, blue and shape of every node. */
function paint(way, n, theme, shapes) {
  const colours = new Uint8Array(4 * n);
  const none = rgbOf(NONE[theme]);
  if (way.kind === 'class') {
    const hues = way.classes.map((_, place) => [...rgbOf(hueOf(way, place, theme)), shapeOf(way, place, shapes)]);
    for (let i = 0; i < n; i++) colours.set(hues[way.placeOf[way.values[i]]], 4 * i);
    return colours;
  }
  const steps = Array.from({ length: 256 }, (_, step) => rampAt(step / 255, theme));
  for (let i = 0; i < n; i++) {
    const value = way.values[i];
    colours.set(Number.isFinite(value) ? steps[Math.max(0, Math.min(255, Math.round(255 * placeOn(way, value))))] : none, 4 * i);
  }
  return colours;
}
