// The notation of selectors: terms such as network=sepolia,label.team=payments|risk. Every
// term must hold, for any of its values.

const encode = (value) => value.replace(/[%,|\s]/g, encodeURIComponent);

function decode(value) {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

// Returns the name and the value of each term, or undefined if the text has another form.
export function parseTerms(text) {
  const terms = [];
  for (const term of text.split(',')) {
    const [, name, values] = /^\s*([^=\s]+)=(.*?)\s*$/.exec(term) ?? [];
    if (!name) return undefined;
    for (const value of values.split('|')) terms.push([name, decode(value.trim())]);
  }
  return terms;
}

// Returns the text of names and values.
export function printTerms(terms) {
  const byName = Map.groupBy(terms, ([name]) => name);
  return [...byName].map(([name, values]) => name + '=' + values.map(([, value]) => encode(value)).join('|')).join(',');
}
