// ----------------------------------------------------------------------------------------------- what the graphics card runs

const POINT_VERTEX = `#version 300 es
precision highp float;
in vec2 at; in vec4 look; in float weight; in float hidden;
uniform vec2 centre, half_size; uniform float scale, radius, ratio, shown;
out vec3 hue; out float shape, reach, seen;
void main() {
  gl_Position = vec4((at - centre) * scale / half_size, 0.0, 1.0);
  reach = radius * weight;
  gl_PointSize = 2.0 * (reach + 1.0) * ratio;
  hue = look.rgb; shape = floor(look.a * 255.0 + 0.5);
  seen = mix(shown, 0.07, hidden);
}`;

// The distance from the outline of a sign is negative inside of it; half a pixel on either side is blended.
const POINT_FRAGMENT = `#version 300 es
precision highp float;
in vec3 hue; in float shape, reach, seen;
uniform vec3 paper; uniform float ratio, faded;
out vec4 colour;
void main() {
  vec2 from = (gl_PointCoord * 2.0 - 1.0) * (reach + 1.0);
  vec2 side = abs(from);
  float away = length(from) - reach;
  if (shape > 0.5) {
    if (shape < 1.5) away = (side.x + side.y) * 0.7071 - reach * 0.86;
    else if (shape < 2.5) away = max(side.x, side.y) - reach * 0.84;
    else if (shape < 3.5) away = max(side.x * 0.866 - from.y * 0.5, from.y) - reach * 0.62;
    else away = max(max(side.x, side.y) - reach, min(side.x, side.y) - reach * 0.38);
  }
  float inside = clamp(0.5 - away * ratio, 0.0, 1.0) * seen;
  if (inside <= 0.003) discard;
  float rim = reach > 2.4 ? smoothstep(-1.3, -0.5, away) * 0.8 : 0.0;
  colour = vec4(mix(hue, paper, max(rim, faded)), 1.0) * inside;
}`;

const LINE_VERTEX = `#version 300 es
precision highp float;
in vec2 from, to;
uniform vec2 centre, half_size; uniform float scale, wide;
out float across;
void main() {
  vec2 a = (from - centre) * scale, b = (to - centre) * scale, ahead = b - a;
  vec2 side = vec2(-ahead.y, ahead.x) / max(length(ahead), 0.001);
  across = (float(gl_VertexID % 2) * 2.0 - 1.0) * (wide * 0.5 + 0.7);
  gl_Position = vec4((mix(a, b, float(gl_VertexID / 2)) + side * across) / half_size, 0.0, 1.0);
}`;

const LINE_FRAGMENT = `#version 300 es
precision highp float;
in float across;
uniform vec4 ink; uniform float wide, ratio;
out vec4 colour;
void main() { colour = vec4(ink.rgb, 1.0) * ink.a * clamp(0.5 + (wide * 0.5 - abs(across)) * ratio, 0.0, 1.0); }`;

// A link is a strip along a quadratic curve, bent to its left, one instance each.
const CURVE_STEPS = 28;
const CURVE_VERTEX = `#version 300 es
precision highp float;
in vec2 from, to; in vec4 ink; in vec3 stroke;
uniform vec2 centre, half_size; uniform float scale;
out vec4 shade; out float across, along, wide, dashed;
void main() {
  float t = float(gl_VertexID / 2) / ${CURVE_STEPS}.0, side = float(gl_VertexID % 2) * 2.0 - 1.0;
  vec2 a = (from - centre) * scale, b = (to - centre) * scale, ahead = b - a;
  float size = max(length(ahead), 0.001);
  vec2 middle = (a + b) * 0.5 + vec2(-ahead.y, ahead.x) * stroke.z;
  vec2 point = mix(mix(a, middle, t), mix(middle, b, t), t);
  vec2 course = normalize(mix(middle - a, b - middle, t) + 0.0001 * ahead / size);
  wide = stroke.x * 0.5;
  across = side * (wide + 1.0);
  along = t * size;
  dashed = stroke.y;
  shade = ink;
  gl_Position = vec4((point + vec2(-course.y, course.x) * across) / half_size, 0.0, 1.0);
}`;

const CURVE_FRAGMENT = `#version 300 es
precision highp float;
in vec4 shade; in float across, along, wide, dashed;
uniform float ratio;
out vec4 colour;
void main() {
  float inside = clamp(0.5 + (wide - abs(across)) * ratio, 0.0, 1.0);
  if (dashed > 0.5) {
    float place = mod(along, 9.0);
    inside *= clamp((5.5 - place) * ratio + 0.5, 0.0, 1.0) * clamp(place * ratio + 0.5, 0.0, 1.0);
  }
  colour = vec4(shade.rgb, 1.0) * (shade.a * inside);
}`;

/** A program with the places of its attributes and uniforms. */
function makeProgram(gl, vertex, fragment) {
  const program = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS) && !gl.isContextLost()) throw new Error(gl.getShaderInfoLog(shader));
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) throw new Error(gl.getProgramInfoLog(program));
  const uniforms = {};
  const at = (name) => (name in uniforms ? uniforms[name] : (uniforms[name] = gl.getUniformLocation(program, name)));
  return { program, at, attribute: (name) => gl.getAttribLocation(program, name) };
}
