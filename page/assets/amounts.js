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

// Returns the larger units that an amount may have, the largest last, and their decimals.
function unitsOf(unit, coin) {
  if (unit === 'lamports') return [['SOL', 9]];
  if (unit === 'stroops') return [['XLM', 7]];
  return unit === 'wei' ? [['gwei', 9], [coin, 18]] : [];
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
  const units = [[unit ?? '', 0], ...unitsOf(unit, coinOf(network) ?? 'ETH')];
  const named = units.find(([known]) => known !== '' && known.toLowerCase() === name.toLowerCase());
  return named && wholeNumber(number, named[1])?.toString();
}

// Returns an amount in a larger unit, such as 100 gwei, or '' if there is none.
export function humanAmount(text, unit, network = '') {
  const [, number, exponent = '0'] = /^([\d.]+)(?:[eE]\+?(\d{1,2}))?$/.exec(text) ?? [];
  const amount = number && wholeNumber(number, Number(exponent));
  const units = unitsOf(unit, coinOf(network) ?? 'native coins');
  if (!amount || units.length === 0) return '';
  const [name, decimals] = units.findLast((larger) => amount >= 10n ** BigInt(larger[1] - 3)) ?? units[0];
  return shift(amount, decimals) + ' ' + name;
}
