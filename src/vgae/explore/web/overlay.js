// ---------------------------------------------------------------------------------------- names, rings and the lasso, painted

const FONT = 'ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif';

/** The place of each class on the map: where most of its nodes are. */
function placesOfClasses(way, points, n) {
  const side = 20, members = way.classes.map(() => new Uint32Array(side * side));
  const cellOf = (i) => Math.min(side - 1, Math.floor(points[2 * i + 1] * side)) * side + Math.min(side - 1, Math.floor(points[2 * i] * side));
  for (let i = 0; i < n; i++) members[way.placeOf[way.values[i]]][cellOf(i)]++;
  return members.map((cells, place) => {
    let best = -1, [x, y] = [0.5, 0.5];
    for (let row = 1; row < side - 1; row++) {
      for (let column = 1; column < side - 1; column++) {
        let sum = 0, across = 0, up = 0;
        for (let dy = -1; dy <= 1; dy++) for (let dx = -1; dx <= 1; dx++) {
          const held = cells[(row + dy) * side + column + dx];
          sum += held; across += held * (column + dx + 0.5); up += held * (row + dy + 0.5);
        }
        if (sum > best) { best = sum; if (sum) { x = across / sum / side; y = up / sum / side; } }
      }
    }
    return { x, y, name: way.classes[place].name, num: way.classes[place].num, place, other: Boolean(way.classes[place].other) };
  }).filter((each) => !each.other && each.num > 0);
}

/** The two-dimensional layer above the map. */
function makeOverlay(canvas) {
  const context = canvas.getContext('2d');
  let taken = [];
  const free = (box) => !taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1]);

  const overlay = { context };
  overlay.begin = (camera, ratio) => {
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, camera.width, camera.height);
    context.lineJoin = 'round';
    context.direction = 'ltr';
    taken = [];
  };

  /** A text, unless it would lie on another; whether it was painted. */
  overlay.text = (text, x, y, { size = 12, bold = false, colour, halo, centred = false, force = false, gap = 8 }) => {
    context.font = `${bold ? 600 : 500} ${size}px ${FONT}`;
    context.textBaseline = 'middle';
    const width = context.measureText(text).width;
    const sides = centred ? [[x - width / 2, y]] : [[x + gap, y], [x - gap - width, y], ...(force ? [[x + gap, y - 17], [x + gap, y + 17]] : [])];
    const boxOf = ([left, middle]) => [left - 3, middle - size * 0.68, left + width + 3, middle + size * 0.68];
    const side = sides.find((each) => free(boxOf(each))) || (force ? sides[0] : null);
    if (side) {
      const [left, middle] = side;
      taken.push(boxOf(side));
      context.strokeStyle = halo;
      context.lineWidth = size > 13 ? 4.5 : 3.5;
      context.globalAlpha = 0.9;
      context.strokeText(text, left, middle);
      context.globalAlpha = 1;
      context.fillStyle = colour;
      context.fillText(text, left, middle);
    }
    return Boolean(side);
  };

  overlay.ring = (x, y, radius, colour, width = 2) => {
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
  };

  /** The head of an arrow at the end of a curve, which is bent as the shader bends it. */
  overlay.arrow = (from, to, bend, reach, colour, alpha) => {
    const [dx, dy] = [to[0] - from[0], to[1] - from[1]], size = Math.hypot(dx, dy);
    if (size < 3 * reach) return;
    const middle = [(from[0] + to[0]) / 2 + dy * bend, (from[1] + to[1]) / 2 - dx * bend];
    const angle = Math.atan2(to[1] - middle[1], to[0] - middle[0]);
    const tip = [to[0] - Math.cos(angle) * reach, to[1] - Math.sin(angle) * reach];
    context.globalAlpha = alpha;
    context.fillStyle = colour;
    context.beginPath();
    context.moveTo(...tip);
    for (const turn of [2.72, -2.72]) context.lineTo(tip[0] + 8 * Math.cos(angle + turn), tip[1] + 8 * Math.sin(angle + turn));
    context.fill();
    context.globalAlpha = 1;
  };

  overlay.lasso = (line, colour) => {
    if (line.length < 2) return;
    context.beginPath();
    line.forEach(([x, y], m) => (m ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.closePath();
    context.fillStyle = colour;
    context.globalAlpha = 0.1;
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    context.setLineDash([5, 4]);
    context.stroke();
    context.setLineDash([]);
  };
  return overlay;
}

/** Whether a point lies inside a closed line. */
function inside(line, x, y) {
  let within = false;
  for (let m = 0, before = line.length - 1; m < line.length; before = m++) {
    const [ax, ay] = line[m], [bx, by] = line[before];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) within = !within;
  }
  return within;
}
