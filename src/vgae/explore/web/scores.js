// ----------------------------------------------------------------------- the model: logits, probabilities and their spread

/** logit_ij = q_i·k_j + r_i + c_j, from what Python has stored. */
function makeScores(sections, meta, graph) {
  const n = meta.num_nodes, d = meta.dim;
  const q = readMatrix(sections, 'q', n, d);
  const k = sections.k ? readMatrix(sections, 'k', n, d) : q;
  const rowBias = sections.row_bias || null, columnBias = sections.column_bias || null;
  const { shift, logits: knots, log_odds: heights } = meta.calibration;

  function logit(i, j) {
    let sum = (rowBias ? rowBias[i] : 0) + (columnBias ? columnBias[j] : 0);
    for (let a = 0, x = i * d, y = j * d; a < d; a++) sum += q[x + a] * k[y + a];
    return sum;
  }

  /** The logits of a node with all others: of links that go out from it, or that come in. */
  function scan(i, direction) {
    const found = new Float64Array(n), back = direction === 'in';
    const own = (back ? k : q).subarray(i * d, i * d + d), other = back ? q : k;
    const ownBias = back ? columnBias : rowBias, otherBias = back ? rowBias : columnBias;
    const start = ownBias ? ownBias[i] : 0;
    for (let j = 0, y = 0; j < n; j++, y += d) {
      let sum = start + (otherBias ? otherBias[j] : 0);
      for (let a = 0; a < d; a++) sum += own[a] * other[y + a];
      found[j] = sum;
    }
    return found;
  }

  /** Log odds of a link, from a logit: by the knots of the calibration, or shifted. */
  function logOdds(s) {
    if (!knots.length) return s - shift;
    const last = knots.length - 1;
    if (s <= knots[0]) return heights[0];
    if (s >= knots[last]) return heights[last];
    let low = 0, high = last;
    while (high - low > 1) { const middle = (low + high) >> 1; if (knots[middle] <= s) low = middle; else high = middle; }
    return heights[low] + ((heights[high] - heights[low]) * (s - knots[low])) / (knots[high] - knots[low]);
  }

  const sigmoid = (x) => (x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x)));
  const probabilityOf = (s) => sigmoid(logOdds(s));
  const spread = meta.noise ? makeSpread(sections, meta, { q, k, logit, probabilityOf }) : () => null;

  /** Whether a pair could be a link: of different nodes, across where the graph is bipartite. */
  const possible = (i, j) => i !== j && !(graph.sides && graph.sides[i] === graph.sides[j]);

  /** A node's candidates: the best by logit (of equal ones the smaller index first), and how many reach each log odds. */
  function predict(i, { direction = 'out', most = 50, wanted = 'new', least = 0 } = {}) {
    const all = scan(i, direction), best = [], bins = new Uint32Array(BINS);
    const { low, high } = range();
    let reached = 0;
    for (let j = 0; j < n; j++) {
      if (!possible(i, j)) continue;
      const known = direction === 'in' ? knownOf(graph, j, i) : knownOf(graph, i, j);
      if (wanted === 'new' ? known !== 'no' : wanted === 'known' && known === 'no') continue;
      const height = logOdds(all[j]);
      bins[Math.max(0, Math.min(BINS - 1, Math.floor((BINS * (height - low)) / (high - low))))]++;
      if (sigmoid(height) < least) continue;
      reached++;
      if (best.length === most && !(all[j] > best[most - 1].logit)) continue;
      if (best.length === most) best.pop();
      let place = best.length;
      while (place > 0 && best[place - 1].logit < all[j]) place--;
      best.splice(place, 0, { node: j, logit: all[j], p: sigmoid(height), known });
    }
    return { best, reached, bins };
  }

  /** The log odds between which a threshold can be. */
  function range() {
    const low = knots.length ? heights[0] : -9, high = knots.length ? heights[heights.length - 1] : 7;
    return high - low > 0.5 ? { low: Math.max(low, -14), high } : { low: high - 5, high };
  }

  /** What each dimension, and the biases, add to a logit. */
  function parts(i, j) {
    const found = [];
    for (let a = 0; a < d; a++) found.push({ name: `dimension ${a + 1}`, adds: q[i * d + a] * k[j * d + a] });
    const bias = (rowBias ? rowBias[i] : 0) + (columnBias ? columnBias[j] : 0);
    if (rowBias || columnBias) found.push({ name: 'biases', adds: bias });
    return found.sort((x, y) => Math.abs(y.adds) - Math.abs(x.adds));
  }

  return { logit, scan, logOdds, sigmoid, probabilityOf, probability: (i, j) => probabilityOf(logit(i, j)), spread, predict, range, parts, possible };
}

const BINS = 48;

/** The mean and standard deviation of a pair's probability over the posterior: see vgae/explore/noise.py. */
function makeSpread(sections, meta, { q, k, logit, probabilityOf }) {
  const n = meta.num_nodes, d = meta.dim, noise = meta.noise, codes = sections.sigma;
  const variance = (i, a) => Math.exp(2 * (noise.least + noise.step * codes[a * n + i]));
  const ofQ = (i, a) => noise.q_scale[a] ** 2 * variance(i, a);
  const ofK = (j, a) => noise.k_scale[a] ** 2 * variance(j, a + noise.k_from);

  function product(i, j) {
    let total = noise.bias === null ? 0 : variance(i, noise.bias) + variance(j, noise.bias);
    for (let a = 0; a < d; a++) {
      const vq = ofQ(i, a), vk = ofK(j, a);
      total += q[i * d + a] ** 2 * vk + k[j * d + a] ** 2 * vq + vq * vk;
    }
    return { mean: logit(i, j), variance: total };
  }

  function distance(i, j) {
    let top = logit(i, j), mean = 0, total = 0;
    for (let a = 0; a < d; a++) {
      const v = ofQ(i, a) + ofQ(j, a), apart = q[i * d + a] - q[j * d + a];
      top += apart ** 2 / 2;
      mean += (apart ** 2 + v) / 2;
      total += apart ** 2 * v + v ** 2 / 2;
    }
    const shape = (mean * mean) / total, scale = total / mean;
    return { mean, variance: total, logOf: (y) => (shape - 1) * Math.log(y) - y / scale, logitAt: (y) => top - y };
  }

  function bilinear(i, j) {
    let total = 0;
    for (let a = 0; a < d; a++) {
      let along = 0;
      const own = variance(i, a);
      for (let b = 0; b < d; b++) {
        const weight = noise.weight[a * d + b];
        along += weight * k[j * d + b];
        total += weight ** 2 * own * variance(j, b);
      }
      total += own * along ** 2 + variance(j, a) * q[i * d + a] ** 2;
    }
    return { mean: logit(i, j), variance: total };
  }

  /** On the sphere: mean length of an embedding, variance across and how much more it is along. */
  function lengths(i) {
    const kappa = Math.exp(noise.least + noise.step * codes[i]), twice = noise.width - 1, total = kappa + twice, beta = twice / 2;
    const across = (4 * (beta + kappa) * beta) / (total * (total + 1)) / twice;
    return { mean: kappa / total, across, more: (4 * (beta + kappa) * beta) / (total * total * (total + 1)) - across };
  }

  function sphere(i, j) {
    const a = lengths(i), b = lengths(j), t = (logit(i, j) - noise.base) / noise.scale, square = t * t;
    const total = a.mean ** 2 * (b.across + b.more * square) + b.mean ** 2 * (a.across + a.more * square)
      + a.across * b.across * noise.width + a.across * b.more + b.across * a.more + a.more * b.more * square;
    const mean = a.mean * b.mean * t, middle = (1 + mean) / 2, sum = (4 * middle * (1 - middle)) / total - 1;
    const logOf = (y) => (middle * sum - 1) * Math.log((1 + y) / 2) + ((1 - middle) * sum - 1) * Math.log((1 - y) / 2);
    return { mean, variance: total, logOf, logitAt: (y) => noise.base + noise.scale * y };
  }

  const moments = { product, distance, bilinear, sphere }[noise.kind];
  return (i, j) => {
    const { mean, variance: v, logOf, logitAt } = moments(i, j), std = Math.sqrt(v);
    const at = [], logs = [];
    for (let step = -36; step <= 60; step++) {
      const y = mean + (std * step) / 6, log = logOf ? logOf(y) : -step * step / 72;
      if (Number.isFinite(log)) { at.push(y); logs.push(log); }
    }
    const most = Math.max(...logs);
    let weights = 0, first = 0, second = 0;
    logs.forEach((log, m) => {
      const weight = Math.exp(log - most), p = probabilityOf(logitAt ? logitAt(at[m]) : at[m]);
      weights += weight; first += weight * p; second += weight * p * p;
    });
    first /= weights;
    return { mean: first, std: Math.sqrt(Math.max(0, second / weights - first * first)) };
  };
}
