// -------------------------------------------------------------------------------------------------- what the page holds

const KINDS = { u1: Uint8Array, i1: Int8Array, u2: Uint16Array, i2: Int16Array, u4: Uint32Array, f4: Float32Array, f2: Uint16Array };

/** The bytes of a section: base64, then inflated by the browser. */
async function inflate(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).arrayBuffer();
}

/** All sections by name; their elements are taken out of the page. */
async function readSections() {
  const found = {};
  for (const element of document.querySelectorAll('script.section')) {
    const { name, kind } = element.dataset;
    const buffer = await inflate(element.textContent);
    element.remove();
    found[name] = kind === 'json' ? JSON.parse(new TextDecoder().decode(buffer)) : fromPlanes(new Uint8Array(buffer), kind);
    if (kind === 'f2') found[name] = fromHalves(found[name]);
  }
  return found;
}

/** Numbers whose lowest bytes come first, then all second ones and so on; i3 are whole numbers of three bytes. */
function fromPlanes(bytes, kind) {
  if (kind === 'i3') {
    const size = bytes.length / 3, numbers = new Int32Array(size);
    for (let i = 0; i < size; i++) numbers[i] = ((bytes[2 * size + i] << 24) >> 8) | (bytes[size + i] << 8) | bytes[i];
    return numbers;
  }
  const width = KINDS[kind].BYTES_PER_ELEMENT, size = bytes.length / width, joined = new Uint8Array(bytes.length);
  for (let plane = 0; plane < width; plane++) for (let i = 0; i < size; i++) joined[i * width + plane] = bytes[plane * size + i];
  return new KINDS[kind](joined.buffer);
}

/** Numbers of 16 bits, as IEEE has them, in 32. */
function fromHalves(halves) {
  const values = new Float32Array(halves.length);
  for (let i = 0; i < halves.length; i++) {
    const sign = halves[i] & 0x8000 ? -1 : 1, exponent = (halves[i] >> 10) & 31, part = halves[i] & 1023;
    values[i] = sign * (exponent === 0 ? part * 2 ** -24 : exponent === 31 ? NaN : (1 + part / 1024) * 2 ** (exponent - 15));
  }
  return values;
}

/** A matrix row by row: whole numbers by directions, times the units of these, turned back into dimensions. */
function readMatrix(sections, name, rows, columns) {
  const units = sections[name + '_units'], numbers = sections[name], basis = sections.basis;
  const values = new Float32Array(rows * columns), turned = new Float64Array(columns);
  for (let i = 0; i < rows; i++) {
    for (let e = 0; e < columns; e++) turned[e] = units[e] * numbers[e * rows + i];
    for (let d = 0; d < columns; d++) {
      let sum = 0;
      for (let e = 0; e < columns; e++) sum += turned[e] * basis[d * columns + e];
      values[i * columns + d] = sum;
    }
  }
  return values;
}

/** Where the entries of each row start, given how many it has. */
function startsOf(counts) {
  const starts = new Uint32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) starts[i + 1] = starts[i] + counts[i];
  return starts;
}

/** Lists of ends by node, sorted, without duplicates, out of pairs. */
function listsOf(numNodes, sources, targets) {
  const counts = new Uint32Array(numNodes);
  for (let m = 0; m < sources.length; m++) counts[sources[m]]++;
  const starts = startsOf(counts), next = starts.slice(), ends = new Uint32Array(sources.length);
  for (let m = 0; m < sources.length; m++) ends[next[sources[m]]++] = targets[m];
  const kept = new Uint32Array(numNodes + 1);
  let write = 0;
  for (let i = 0; i < numNodes; i++) {
    const row = ends.slice(starts[i], starts[i + 1]).sort();
    for (let m = 0; m < row.length; m++) if (m === 0 || row[m] !== row[m - 1]) ends[write++] = row[m];
    kept[i + 1] = write;
  }
  return { starts: kept, ends: ends.slice(0, write) };
}

const rowOf = (lists, i) => lists.ends.subarray(lists.starts[i], lists.starts[i + 1]);

/** Whether a sorted row has a number. */
function holds(lists, i, j) {
  let low = lists.starts[i], high = lists.starts[i + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lists.ends[middle] < j) low = middle + 1; else high = middle;
  }
  return low < lists.starts[i + 1] && lists.ends[low] === j;
}

/** The graph: links by source, by target, and both ways; those held out; degrees. */
function readGraph(sections, meta) {
  const n = meta.num_nodes, counts = sections.link_counts, targets = sections.link_ends;
  const sources = new Uint32Array(targets.length);
  for (let i = 0, m = 0; i < n; i++) for (let c = 0; c < counts[i]; c++) sources[m++] = i;
  const joined = (a, b) => { const all = new Uint32Array(2 * a.length); all.set(a); all.set(b, a.length); return all; };
  const near = listsOf(n, joined(sources, targets), joined(targets, sources));
  const out = meta.directed ? listsOf(n, sources, targets) : near;
  const into = meta.directed ? listsOf(n, targets, sources) : near;
  const pairs = sections.held_out, from = [], to = [];
  for (let m = 0; m < pairs.length; m += 2) {
    from.push(pairs[m]); to.push(pairs[m + 1]);
    if (!meta.directed) { from.push(pairs[m + 1]); to.push(pairs[m]); }
  }
  const held = listsOf(n, from, to), heldInto = meta.directed ? listsOf(n, to, from) : held;
  const degree = new Uint32Array(n);
  for (let i = 0; i < n; i++) degree[i] = near.starts[i + 1] - near.starts[i];
  return { n, directed: meta.directed, sources, targets, near, out, into, held, heldInto, degree, sides: sections.sides || null };
}

/** What is known of the pair i → j, in the words of Python: train, held_out, self or no. */
function knownOf(graph, i, j) {
  if (i === j) return 'self';
  if (holds(graph.out, i, j)) return 'train';
  return holds(graph.held, i, j) ? 'held_out' : 'no';
}
