// Exact JSON. A number in JavaScript has 53 bits and an amount in wei has 256, so
// numbers are kept as text in both directions.

export class Literal {
  constructor(text) { this.text = text; }
}

export const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value) && !(value instanceof Literal);

// A member may have the name __proto__.
const newObject = () => Object.create(null);

const readJSON = (text) => JSON.parse(text, (_, value, { source }) => {
  if (typeof value === 'number') return new Literal(source);
  return isObject(value) ? Object.assign(newObject(), value) : value;
});

// Returns undefined if the text is not JSON.
export function tryJSON(text) {
  try {
    return readJSON(text);
  } catch {
    return undefined;
  }
}

export const writeJSON = (value, indent) => JSON.stringify(value, (_, member) => (member instanceof Literal ? JSON.rawJSON(member.text) : member), indent);

// Text that is not a number is sent as a string, so that the API reports the
// problem.
export function numberOrText(text) {
  return /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text) ? new Literal(text) : text;
}

export const isSame = (a, b) => writeJSON(a) === writeJSON(b);

// Returns the JSON Merge Patch (RFC 7396) that changes one object into the other. It removes the
// members of an object that is gone one by one, so that others stay, and the object itself only if
// the stored one has no others: an empty object could be invalid.
export function patchBetween(before, after, stored) {
  const patch = newObject();
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [from, to, now] = [before[name], after[name], stored?.[name]];
    if (isSame(from, to)) continue;
    if (!isObject(from) || (to !== undefined && !isObject(to))) {
      patch[name] = to === undefined ? null : to;
      continue;
    }
    const inside = patchBetween(from, to ?? {}, now);
    patch[name] = to === undefined && Object.keys(now ?? {}).every((member) => inside[member] === null) ? null : inside;
  }
  return patch;
}

// Returns the values of an object and of the objects inside, by their JSON path.
export function leavesOf(object, prefix = '') {
  const leaves = new Map();
  for (const [name, value] of Object.entries(object)) {
    if (!isObject(value)) leaves.set(prefix + name, value);
    else for (const [path, leaf] of leavesOf(value, prefix + name + '.')) leaves.set(path, leaf);
  }
  return leaves;
}
