// Amounts in human units. The arithmetic is exact: an amount may have 78 digits.

// The larger units of each unit, the largest last, and their decimals. 10^18 wei are an ether on every
// EVM network, whatever its coin is called.
const largerUnits = { wei: [['gwei', 9], ['ether', 18]], lamports: [['SOL', 9]], stroops: [['XLM', 7]] };

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
export function digitsOf(text, unit) {
  const [, number, name = ''] = /^([\d.]+) *([a-z]+)$/i.exec(text) ?? [];
  const units = [[unit ?? '', 0], ...largerUnits[unit] ?? []];
  const named = units.find(([known]) => known !== '' && known.toLowerCase() === name.toLowerCase().replace(/^eth$/, 'ether'));
  return named && wholeNumber(number, named[1])?.toString();
}

// Returns an amount in a larger unit, such as 100 gwei, or '' if there is none.
export function humanAmount(text, unit) {
  const [, number, exponent = '0'] = /^([\d.]+)(?:[eE]\+?(\d{1,2}))?$/.exec(text) ?? [];
  const amount = number && wholeNumber(number, Number(exponent));
  const units = largerUnits[unit];
  if (!amount || !units) return '';
  const [name, decimals] = units.findLast((larger) => amount >= 10n ** BigInt(larger[1] - 3)) ?? units[0];
  return shift(amount, decimals) + ' ' + name;
}
