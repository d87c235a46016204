// ------------------------------------------------------------------------------------------- numbers and words for people

const NUMBER = new Intl.NumberFormat('en-US');
const count = (number, noun, plural) => `${NUMBER.format(number)} ${number === 1 ? noun : plural || noun + 's'}`;

/** A probability in percent, with digits that mean something at either end. */
function percent(p) {
  if (!Number.isFinite(p)) return '–';
  const value = 100 * p;
  if (value >= 99.95) return value > 99.995 ? '> 99.99 %' : value.toFixed(2) + ' %';
  if (value >= 10) return value.toFixed(value >= 99 ? 1 : 0) + ' %';
  if (value >= 1) return value.toFixed(1) + ' %';
  if (value >= 0.001) return Number(value.toPrecision(2)).toString() + ' %';
  return '< 0.001 %';
}

/** The spread of a probability, in the digits that the probability has. */
function plusMinus(std, p) {
  if (std === null || !Number.isFinite(std)) return '';
  const value = 100 * std;
  if (p >= 0.01 && value < 0.05) return '± < 0.1';
  return '± ' + (value >= 10 ? value.toFixed(0) : value >= 0.1 ? value.toFixed(1) : value < 5e-5 ? '0' : Number(value.toPrecision(1)).toFixed(value < 0.001 ? 4 : value < 0.01 ? 3 : 2));
}

/** How often, in words: about 1 in 3. */
function odds(p) {
  if (!(p > 0)) return '';
  if (p > 0.95) return 'almost certain, by the model';
  if (p > 0.6) return `about ${Math.round(10 * p)} in 10 such pairs are linked`;
  const among = 1 / p;
  const rounded = among < 10 ? Math.round(among) : Number(among.toPrecision(2));
  return `about 1 in ${NUMBER.format(rounded)} such pairs is linked`;
}

/** A number of a column. */
function figure(value) {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return NUMBER.format(value);
  if (size >= 1e6 || (size < 1e-3 && size > 0)) return value.toExponential(2);
  return Number(value.toPrecision(4)).toString();
}

// What would turn a line of text around, or break it, is left out where text is painted and cannot be isolated.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/** A text in short, for the map: on one line, without signs that steer. */
function short(text, most = 26) {
  const plain = text.slice(0, 400).replace(CONTROLS, '');
  const letters = Array.from(plain);
  return letters.length > most ? letters.slice(0, most - 1).join('') + '…' : plain;
}

/** The beginning of a text that may be very long. */
const beginning = (text, most = 300) => (text.length > most ? Array.from(text.slice(0, most)).slice(0, -1).join('') + '…' : text);
