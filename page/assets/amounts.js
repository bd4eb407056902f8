// Amounts in human units. The arithmetic is exact: an amount may have 78 digits.

// The native coin of an EVM network. The API accepts any network name, and a wrong
// currency would be worse than none.
const coins = [
  [/^(mainnet|ethereum|eth|sepolia|holesky|hoodi|goerli|arbitrum|optimism|base|linea|scroll|zksync|blast|unichain|zora)(-|$)/i, 'ETH'],
  [/^(polygon|matic|amoy)(-|$)/i, 'POL'],
  [/^(bsc|bnb)(-|$)/i, 'BNB'],
  [/^(avalanche|fuji)(-|$)/i, 'AVAX'],
  [/^(gnosis|chiado)(-|$)/i, 'xDAI'],
  [/^celo(-|$)/i, 'CELO'],
];

const coinOf = (network) => coins.find(([name]) => name.test(network))?.[1];

// Returns the decimals of the units that an amount may have, by their names in lower case.
function unitsOf(unit, network) {
  if (unit === 'lamports') return new Map([['lamports', 0], ['sol', 9]]);
  if (unit === 'stroops') return new Map([['stroops', 0], ['xlm', 7]]);
  if (unit === 'wei') return new Map([['wei', 0], ['gwei', 9], [(coinOf(network) ?? 'ETH').toLowerCase(), 18]]);
  return new Map();
}

// Returns the whole number that a decimal number with an exponent stands for, or
// undefined.
function wholeNumber(text, exponent) {
  const parts = /^(\d{1,80})(?:\.(\d{1,80}))?$/.exec(text);
  if (!parts) return undefined;
  const [, digits, fraction = ''] = parts;
  const kept = fraction.replace(/0+$/, '');
  const zeros = exponent - kept.length;
  return zeros < 0 ? undefined : BigInt(digits + kept + '0'.repeat(zeros));
}

function shift(amount, decimals) {
  const digits = amount.toString().padStart(decimals + 1, '0');
  const fraction = digits.slice(-decimals).replace(/0+$/, '');
  return digits.slice(0, -decimals) + (fraction && '.' + fraction);
}

// Returns the digits of an amount that is entered with a unit, such as 100 gwei, or
// undefined if it has no unit or is not a whole number of the smallest one.
export function digitsOf(text, unit, network = '') {
  const [, number, name = ''] = /^([\d.]+) *([a-z]+)$/i.exec(text) ?? [];
  const decimals = unitsOf(unit, network).get(name.toLowerCase());
  return decimals === undefined ? undefined : wholeNumber(number, decimals)?.toString();
}

// Returns an amount in a larger unit, such as 100 gwei, or '' if there is none.
export function humanAmount(text, unit, network = '') {
  const [, number, exponent = '0'] = /^([\d.]+)(?:[eE]\+?(\d{1,2}))?$/.exec(text) ?? [];
  const amount = number && wholeNumber(number, Number(exponent));
  if (!amount) return '';
  if (unit === 'lamports') return shift(amount, 9) + ' SOL';
  if (unit === 'stroops') return shift(amount, 7) + ' XLM';
  if (unit !== 'wei') return '';
  return amount < 10n ** 15n ? shift(amount, 9) + ' gwei' : shift(amount, 18) + ' ' + (coinOf(network) ?? 'native coins');
}
