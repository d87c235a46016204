// ----------------------------------------------------------------------------------------------- where the map is looked at

const calm = matchMedia('(prefers-reduced-motion: reduce)');
const NEAREST_SCALE = 60; // times the scale at which everything is seen

/** A view of the unit square: its centre and its scale in pixels, which glide to where they are sent. */
function makeCamera() {
  const camera = { x: 0.5, y: 0.5, scale: 500, fitted: 500, width: 1, height: 1, room: { left: 0, right: 0, top: 0, bottom: 0 } };
  let goal = { x: 0.5, y: 0.5, scale: 500 }, anchor = null, path = null;

  camera.resize = (width, height, room) => {
    const before = camera.fitted;
    Object.assign(camera, { width, height, room });
    const free = { width: width - room.left - room.right, height: height - room.top - room.bottom };
    camera.fitted = Math.max(60, Math.min(free.width, free.height) * 0.98);
    const factor = camera.fitted / before;
    camera.scale *= factor;
    goal.scale *= factor;
  };

  const jump = () => { Object.assign(camera, goal); anchor = path = null; };
  const limited = (scale) => Math.max(camera.fitted * 0.5, Math.min(camera.fitted * NEAREST_SCALE, scale));

  /** The pixel of a point, and the point of a pixel. */
  camera.toScreen = (x, y) => [camera.width / 2 + (x - camera.x) * camera.scale, camera.height / 2 - (y - camera.y) * camera.scale];
  camera.toMap = (px, py) => [camera.x + (px - camera.width / 2) / camera.scale, camera.y - (py - camera.height / 2) / camera.scale];

  /** The centre at which a point is in the middle of what panels leave free. */
  const centred = (x, y, scale) => ({
    x: x + (camera.room.right - camera.room.left) / 2 / scale,
    y: y + (camera.room.top - camera.room.bottom) / 2 / scale,
    scale,
  });

  camera.fit = (now) => { goal = centred(0.5, 0.5, camera.fitted); anchor = null; path = null; if (now || calm.matches) jump(); };

  camera.pan = (dx, dy) => {
    camera.x -= dx / camera.scale; camera.y += dy / camera.scale;
    goal = { x: camera.x, y: camera.y, scale: goal.scale }; anchor = null; path = null;
  };

  /** Zoom by a factor, towards a pixel that stays where it is. */
  camera.zoom = (factor, px = camera.width / 2, py = camera.height / 2) => {
    const [x, y] = camera.toMap(px, py);
    anchor = { x, y, px, py };
    path = null;
    goal.scale = limited(goal.scale * factor);
    if (calm.matches) { camera.scale = goal.scale; hold(); anchor = null; }
  };

  const hold = () => {
    camera.x = anchor.x - (anchor.px - camera.width / 2) / camera.scale;
    camera.y = anchor.y + (anchor.py - camera.height / 2) / camera.scale;
    goal.x = camera.x; goal.y = camera.y;
  };

  /** Show all of some points, zooming no further in than `closest` times. */
  camera.show = (points, closest = 7) => {
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const [x, y] of points) { left = Math.min(left, x); right = Math.max(right, x); low = Math.min(low, y); high = Math.max(high, y); }
    const { room } = camera;
    const across = (camera.width - room.left - room.right) * 0.78, upright = (camera.height - room.top - room.bottom) * 0.78;
    const scale = Math.min(across / Math.max(right - left, 1e-6), upright / Math.max(high - low, 1e-6), camera.fitted * closest);
    goal = centred((left + right) / 2, (low + high) / 2, limited(scale));
    anchor = null;
    path = { from: { x: camera.x, y: camera.y, scale: camera.scale }, begun: performance.now() };
    if (calm.matches) jump();
  };

  /** One step towards the goal; whether there is more to go. */
  camera.step = (now) => {
    if (path) {
      const part = Math.min(1, (now - path.begun) / 650), eased = part < 0.5 ? 4 * part ** 3 : 1 - (-2 * part + 2) ** 3 / 2;
      const { from } = path;
      camera.scale = from.scale * (goal.scale / from.scale) ** eased;
      camera.x = from.x + (goal.x - from.x) * eased;
      camera.y = from.y + (goal.y - from.y) * eased;
      if (part === 1) jump();
      return part < 1;
    }
    const share = Math.abs(Math.log(goal.scale / camera.scale));
    const left = share + Math.hypot(goal.x - camera.x, goal.y - camera.y) * camera.scale * 0.01;
    if (left < 0.002) { const held = anchor; camera.scale = goal.scale; if (held) hold(); else jump(); anchor = null; return false; }
    camera.scale *= (goal.scale / camera.scale) ** 0.24;
    if (anchor) hold();
    else { camera.x += (goal.x - camera.x) * 0.24; camera.y += (goal.y - camera.y) * 0.24; }
    return true;
  };
  return camera;
}
