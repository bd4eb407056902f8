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

const coinOf = (network) => coins.find(([name]) => name.test(network))?.[1] ?? 'native coins';

// Returns the whole number that a JSON number stands for, or undefined.
function wholeNumber(text) {
  const parts = /^(\d{1,80})(?:\.(\d{1,80}))?(?:[eE]\+?(\d{1,2}))?$/.exec(text);
  if (!parts) return undefined;
  const [, digits, fraction = '', exponent = '0'] = parts;
  const kept = fraction.replace(/0+$/, '');
  const zeros = Number(exponent) - kept.length;
  return zeros < 0 ? undefined : BigInt(digits + kept + '0'.repeat(zeros));
}

function shift(amount, decimals) {
  const digits = amount.toString().padStart(decimals + 1, '0');
  const fraction = digits.slice(-decimals).replace(/0+$/, '');
  return digits.slice(0, -decimals) + (fraction && '.' + fraction);
}

// Returns an amount in a larger unit, such as 100 gwei, or '' if there is none.
export function humanAmount(text, unit, network = '') {
  const amount = wholeNumber(text);
  if (!amount) return '';
  if (unit === 'lamports') return shift(amount, 9) + ' SOL';
  if (unit === 'stroops') return shift(amount, 7) + ' XLM';
  if (unit !== 'wei') return '';
  return amount < 10n ** 15n ? shift(amount, 9) + ' gwei' : shift(amount, 18) + ' ' + coinOf(network);
}
