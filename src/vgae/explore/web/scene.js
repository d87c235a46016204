// -------------------------------------------------------------------------------------------------- nodes and links, drawn

const FLUID_LINKS = 100000; // known links up to which all of them can be drawn at once
const SHOWN_AT_FIRST = 6000; // and up to which they are, when the page opens

/** Everything that WebGL draws. */
function makeScene(canvas, points, graph) {
  const gl = canvas.getContext('webgl2', { antialias: false, alpha: false, powerPreference: 'high-performance', preserveDrawingBuffer: false });
  if (!gl) return null;
  const n = graph.n;
  const programs = {
    point: makeProgram(gl, POINT_VERTEX, POINT_FRAGMENT),
    line: makeProgram(gl, LINE_VERTEX, LINE_FRAGMENT),
    curve: makeProgram(gl, CURVE_VERTEX, CURVE_FRAGMENT),
  };
  const buffer = (values, usage = gl.STATIC_DRAW) => {
    const made = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, made);
    gl.bufferData(gl.ARRAY_BUFFER, values, usage);
    return made;
  };
  const largest = graph.degree.reduce((most, degree) => Math.max(most, degree), 1);
  const weights = Float32Array.from(graph.degree, (degree) => 0.78 + 0.72 * (Math.log1p(degree) / Math.log1p(largest)) ** 1.5);
  const buffers = {
    at: buffer(points), look: buffer(new Uint8Array(4 * n), gl.DYNAMIC_DRAW), weight: buffer(weights),
    hidden: buffer(new Uint8Array(n), gl.DYNAMIC_DRAW), curves: gl.createBuffer(), chosen: gl.createBuffer(), lines: null,
  };
  let numChosen = 0, numCurves = 0;

  const attribute = (program, name, from, size, kind, { normal = false, stride = 0, offset = 0, divisor = 0 } = {}) => {
    const place = program.attribute(name);
    gl.bindBuffer(gl.ARRAY_BUFFER, from);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, size, kind, normal, stride, offset);
    gl.vertexAttribDivisor(place, divisor);
  };
  const layout = (make) => { const made = gl.createVertexArray(); gl.bindVertexArray(made); make(); gl.bindVertexArray(null); return made; };
  const pointLayout = layout(() => {
    attribute(programs.point, 'at', buffers.at, 2, gl.FLOAT);
    attribute(programs.point, 'look', buffers.look, 4, gl.UNSIGNED_BYTE, { normal: true });
    attribute(programs.point, 'weight', buffers.weight, 1, gl.FLOAT);
    attribute(programs.point, 'hidden', buffers.hidden, 1, gl.UNSIGNED_BYTE);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, buffers.chosen);
  });
  const STRIDE = 32;
  const curveLayout = layout(() => {
    const each = { stride: STRIDE, divisor: 1 };
    attribute(programs.curve, 'from', buffers.curves, 2, gl.FLOAT, { ...each, offset: 0 });
    attribute(programs.curve, 'to', buffers.curves, 2, gl.FLOAT, { ...each, offset: 8 });
    attribute(programs.curve, 'stroke', buffers.curves, 3, gl.FLOAT, { ...each, offset: 16 });
    attribute(programs.curve, 'ink', buffers.curves, 4, gl.UNSIGNED_BYTE, { ...each, offset: 28, normal: true });
  });
  let lineLayout = null;

  /** The known links as lines, made when they are first asked for. */
  function makeLines() {
    const ends = new Float32Array(4 * graph.targets.length);
    graph.targets.forEach((target, m) => {
      const source = graph.sources[m];
      ends.set([points[2 * source], points[2 * source + 1], points[2 * target], points[2 * target + 1]], 4 * m);
    });
    buffers.lines = buffer(ends);
    lineLayout = layout(() => {
      attribute(programs.line, 'from', buffers.lines, 2, gl.FLOAT, { stride: 16, divisor: 1 });
      attribute(programs.line, 'to', buffers.lines, 2, gl.FLOAT, { stride: 16, offset: 8, divisor: 1 });
    });
  }

  const scene = { gl, canLink: graph.targets.length <= FLUID_LINKS, linksAtFirst: graph.targets.length <= SHOWN_AT_FIRST };

  scene.setLooks = (looks) => { gl.bindBuffer(gl.ARRAY_BUFFER, buffers.look); gl.bufferSubData(gl.ARRAY_BUFFER, 0, looks); };
  scene.setHidden = (hidden) => { gl.bindBuffer(gl.ARRAY_BUFFER, buffers.hidden); gl.bufferSubData(gl.ARRAY_BUFFER, 0, hidden); };
  scene.setChosen = (nodes) => {
    gl.bindVertexArray(null);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, buffers.chosen);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, Uint32Array.from(nodes), gl.DYNAMIC_DRAW);
    numChosen = nodes.length;
  };

  /** Curves: {from, to, colour: [r, g, b], alpha, width, dashed, bend}, by nodes. */
  scene.setCurves = (curves) => {
    const bytes = new ArrayBuffer(STRIDE * curves.length), numbers = new Float32Array(bytes), inks = new Uint8Array(bytes);
    curves.forEach((curve, m) => {
      numbers.set([
        points[2 * curve.from], points[2 * curve.from + 1], points[2 * curve.to], points[2 * curve.to + 1],
        curve.width, curve.dashed ? 1 : 0, curve.bend,
      ], 8 * m);
      inks.set([...curve.colour, Math.round(255 * curve.alpha)], STRIDE * m + 28);
    });
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers.curves);
    gl.bufferData(gl.ARRAY_BUFFER, bytes, gl.DYNAMIC_DRAW);
    numCurves = curves.length;
  };

  /** The radius of a node in pixels: smaller where there are many, larger where the map is near. */
  scene.radius = (camera) => {
    const base = Math.max(1.15, Math.min(8, 34 / n ** 0.3)) * Math.max(0.75, Math.min(1.25, camera.fitted / 800));
    return Math.min(13, base * Math.max(0.8, camera.scale / camera.fitted) ** 0.42);
  };
  scene.weightOf = (i) => weights[i];

  scene.draw = (camera, ratio, { paper, ink, dimmed, quiet, links, dark }) => {
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(paper[0] / 255, paper[1] / 255, paper[2] / 255, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    const use = (program) => {
      gl.useProgram(program.program);
      gl.uniform2f(program.at('centre'), camera.x, camera.y);
      gl.uniform2f(program.at('half_size'), camera.width / 2, camera.height / 2);
      gl.uniform1f(program.at('scale'), camera.scale);
      gl.uniform1f(program.at('ratio'), ratio);
    };
    if (links && scene.canLink) {
      if (!lineLayout) makeLines();
      use(programs.line);
      const near = Math.min(1, Math.max(0, Math.log2(camera.scale / camera.fitted) / 4));
      const alpha = Math.max(0.02, Math.min(0.3, 6.5 / Math.sqrt(graph.targets.length + 1))) * (1 + near) * (dark ? 1.1 : 1);
      gl.uniform4f(programs.line.at('ink'), ink[0] / 255, ink[1] / 255, ink[2] / 255, alpha * (dimmed || quiet ? 0.22 : 1));
      gl.uniform1f(programs.line.at('wide'), 0.9);
      gl.bindVertexArray(lineLayout);
      gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, graph.targets.length);
    }
    use(programs.point);
    gl.uniform3f(programs.point.at('paper'), paper[0] / 255, paper[1] / 255, paper[2] / 255);
    gl.uniform1f(programs.point.at('radius'), scene.radius(camera));
    gl.uniform1f(programs.point.at('shown'), n > 20000 ? 0.8 : 0.92);
    gl.uniform1f(programs.point.at('faded'), dimmed ? 0.76 : 0);
    gl.bindVertexArray(pointLayout);
    gl.drawArrays(gl.POINTS, 0, n);
    if (numCurves) {
      use(programs.curve);
      gl.bindVertexArray(curveLayout);
      gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 2 * (CURVE_STEPS + 1), numCurves);
    }
    if (numChosen) {
      use(programs.point);
      gl.uniform1f(programs.point.at('shown'), 1);
      gl.uniform1f(programs.point.at('faded'), 0);
      gl.uniform1f(programs.point.at('radius'), Math.max(4, scene.radius(camera) * 1.25));
      gl.bindVertexArray(pointLayout);
      gl.drawElements(gl.POINTS, numChosen, gl.UNSIGNED_INT, 0);
    }
    gl.bindVertexArray(null);
  };
  return scene;
}

/** Nodes by cells of a grid, to find the one under the pointer. */
function makeGrid(points, n) {
  const side = Math.max(1, Math.min(512, Math.round(Math.sqrt(n / 3))));
  const cellOf = (value) => Math.max(0, Math.min(side - 1, Math.floor(value * side)));
  const counts = new Uint32Array(side * side), cells = new Uint32Array(n);
  for (let i = 0; i < n; i++) { cells[i] = cellOf(points[2 * i + 1]) * side + cellOf(points[2 * i]); counts[cells[i]]++; }
  const starts = startsOf(counts), next = starts.slice(), nodes = new Uint32Array(n);
  for (let i = 0; i < n; i++) nodes[next[cells[i]]++] = i;

  /** The nodes within a distance of a point, the nearest first. */
  return (x, y, reach) => {
    const found = [];
    for (let row = cellOf(y - reach); row <= cellOf(y + reach); row++) {
      for (let column = cellOf(x - reach); column <= cellOf(x + reach); column++) {
        const cell = row * side + column;
        for (let m = starts[cell]; m < starts[cell + 1]; m++) {
          const away = Math.hypot(points[2 * nodes[m]] - x, points[2 * nodes[m] + 1] - y);
          if (away <= reach) found.push([away, nodes[m]]);
        }
      }
    }
    return found.sort((a, b) => a[0] - b[0] || a[1] - b[1]).map((each) => each[1]);
  };
}
