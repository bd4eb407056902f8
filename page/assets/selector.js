// The notation of selectors: terms such as network=sepolia,label.team=payments|risk. Every
// term must hold, for any of its values.

// Also encodes what reorders text.
const encode = (value) => value.replace(/[%,|\s\u202a-\u202e\u2066-\u2069]/g, encodeURIComponent);

function decode(value) {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

// Returns the values of a term, such as payments|risk.
export const parseValues = (text) => text.split('|').map((value) => decode(value.trim()));

export const printValues = (values) => values.map(encode).join('|');

// Returns the name and the value of each term, or undefined if the text has another form.
export function parseTerms(text) {
  const terms = [];
  for (const term of text.split(',')) {
    const [, name, values] = /^\s*([^=\s]+)=(.*?)\s*$/.exec(term) ?? [];
    if (!name) return undefined;
    for (const value of parseValues(values)) terms.push([name, value]);
  }
  return terms;
}

// Returns the text of names and values.
export function printTerms(terms) {
  const byName = Map.groupBy(terms, ([name]) => name);
  return [...byName].map(([name, values]) => name + '=' + printValues(values.map(([, value]) => value))).join(',');
}
