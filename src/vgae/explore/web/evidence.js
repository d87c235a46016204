// ------------------------------------------------------------------ what speaks for a link, by name: as `vgae explain` has it

function makeEvidence(sections, meta, graph) {
  const described = meta.features;
  const starts = described ? startsOf(sections.feature_counts) : null;
  const nameOf = (column) => (sections.feature_names ? sections.feature_names[column] : `feature ${column}`);
  const valueAt = (entry) => (described.constant === null ? sections.feature_values[entry] : described.constant);

  /** The strongest features of a node. */
  function features(i, most) {
    if (!described) return [];
    const found = [];
    for (let entry = starts[i]; entry < starts[i + 1] && found.length < most; entry++) {
      found.push({ name: nameOf(sections.feature_columns[entry]), value: valueAt(entry) });
    }
    return found;
  }

  /** The features that two nodes share, by what each adds to the cosine of their TF-IDF rows. */
  function shared(i, j, most) {
    if (!described) return null;
    const of = new Map();
    for (let entry = starts[i]; entry < starts[i + 1]; entry++) of.set(sections.feature_columns[entry], valueAt(entry));
    const found = [], norms = sections.feature_norms[i] * sections.feature_norms[j] || 1;
    let cosine = 0;
    for (let entry = starts[j]; entry < starts[j + 1]; entry++) {
      const column = sections.feature_columns[entry];
      if (!of.has(column)) continue;
      const adds = (sections.feature_weights[column] ** 2 * of.get(column) * valueAt(entry)) / norms;
      cosine += adds;
      found.push({ name: nameOf(column), adds });
    }
    found.sort((x, y) => Math.abs(y.adds) - Math.abs(x.adds));
    return { num: found.length, cosine, found: found.slice(0, most), complete: described.complete };
  }

  /** The nodes that both are linked to, those with few links first. */
  function neighbours(i, j, most) {
    const found = [];
    for (const node of rowOf(graph.near, i)) if (holds(graph.near, j, node)) found.push(node);
    found.sort((x, y) => graph.degree[x] - graph.degree[y] || x - y);
    return { num: found.length, found: found.slice(0, most).map((node) => ({ node, adds: 1 / Math.log(graph.degree[node]) })) };
  }

  /** Paths of length three between four different nodes, the strongest first. */
  function paths(i, j, most) {
    const found = [], ends = Math.sqrt(graph.degree[i] * graph.degree[j]);
    let num = 0;
    for (const a of rowOf(graph.near, i)) {
      if (a === j) continue;
      for (const b of rowOf(graph.near, a)) {
        if (b === i || b === j || !holds(graph.near, j, b)) continue;
        num++;
        const adds = 1 / (ends * graph.degree[a] * graph.degree[b]);
        if (found.length === most && adds <= found[most - 1].adds) continue;
        if (found.length === most) found.pop();
        let place = found.length;
        while (place > 0 && found[place - 1].adds < adds) place--;
        found.splice(place, 0, { nodes: [a, b], adds });
      }
    }
    return { num, found };
  }

  return { features, shared, neighbours, paths };
}
