// The fields of a relayer and of the three policies. A field without a title has the
// title of its name.

const text = (name, more) => ({ kind: 'text', name, ...more });
const whole = (name, unit, more) => ({ kind: 'number', name, unit, keys: 'numeric', ...more });
const amount = (name, unit, more) => whole(name, unit, { keys: 'text', ...more }); // may be entered with a unit
const decimal = (name, more) => ({ kind: 'number', name, keys: 'decimal', ...more });
const yesNo = (name) => ({ kind: 'yesNo', name });
const choice = (name, options, more) => ({ kind: 'choice', name, options, ...more });
const lines = (name, more) => ({ kind: 'lines', name, ...more });
const group = (name, fields) => ({ kind: 'group', name, fields });
const rows = (name, noun, fields) => ({ kind: 'rows', name, noun, fields });

const required = true;

const tokenSwap = group('swap_config', [
  decimal('slippage_percentage', { title: 'Slippage', unit: '%' }),
  whole('min_amount', 'smallest units'),
  whole('max_amount', 'smallest units'),
  whole('retain_min_amount', 'smallest units'),
]);

const cron = text('cron_schedule', { hint: 'A cron expression, such as 0 */6 * * *' });

export const policyFields = {
  evm: [
    amount('gas_price_cap', 'wei', { hint: 'Amounts may have a unit, such as 100 gwei or 0.5 ETH. Every digit is kept, up to 2^256-1.' }),
    amount('min_balance', 'wei'),
    yesNo('eip1559_pricing'),
    yesNo('gas_limit_estimation'),
    yesNo('include_revert_data'),
    yesNo('private_transactions'),
    lines('whitelist_receivers'),
  ],
  solana: [
    choice('fee_payment_strategy', ['user', 'relayer'], { hint: 'Who pays the fees. The default is the user.' }),
    decimal('fee_margin_percentage', { title: 'Fee margin', unit: '%' }),
    amount('max_allowed_fee_lamports', 'lamports', { title: 'Max allowed fee', hint: 'Amounts may have a unit, such as 0.5 SOL.' }),
    amount('min_balance', 'lamports'),
    whole('max_signatures'),
    whole('max_tx_data_size', 'bytes'),
    lines('allowed_accounts'),
    lines('disallowed_accounts'),
    lines('allowed_programs'),
    rows('allowed_tokens', 'token', [
      text('mint', { required }),
      text('symbol'),
      whole('decimals'),
      whole('max_allowed_fee', 'smallest units'),
      tokenSwap,
    ]),
    group('swap_config', [
      choice('strategy', ['jupiter-swap', 'jupiter-ultra', 'noop']),
      cron,
      amount('min_balance_threshold', 'lamports'),
      group('jupiter_swap_options', [
        amount('priority_fee_max_lamports', 'lamports', { title: 'Max priority fee' }),
        choice('priority_level', ['medium', 'high', 'veryHigh']),
        yesNo('dynamic_compute_unit_limit'),
      ]),
    ]),
  ],
  stellar: [
    choice('fee_payment_strategy', ['user', 'relayer'], { hint: 'Who pays the fees.' }),
    decimal('fee_margin_percentage', { title: 'Fee margin', unit: '%' }),
    decimal('slippage_percentage', { title: 'Slippage', unit: '%' }),
    amount('max_fee', 'stroops', { hint: 'Amounts may have a unit, such as 0.5 XLM.' }),
    amount('min_balance', 'stroops'),
    whole('timeout_seconds', 'seconds', { title: 'Timeout' }),
    yesNo('concurrent_transactions'),
    rows('allowed_tokens', 'token', [
      text('asset', { required, hint: 'native, CODE:ISSUER or a contract ID' }),
      whole('max_allowed_fee', 'smallest units'),
      group('metadata', [
        { kind: 'json', name: 'kind', hint: '"native", {"classic":{"code":"…","issuer":"…"}} or {"contract":{"contract_id":"…"}}' },
        whole('decimals'),
        text('canonical_asset_id'),
      ]),
      tokenSwap,
    ]),
    group('swap_config', [
      lines('strategies', { hint: 'order-book or soroswap, in order of preference, one per line or separated by commas or spaces' }),
      cron,
      amount('min_balance_threshold', 'stroops'),
    ]),
  ],
};

export const networkTypeField = choice('network_type', Object.keys(policyFields), { required });

export const relayerFields = [
  text('name', { required }),
  networkTypeField,
  text('network', { required, hint: 'Such as sepolia, devnet or testnet' }),
  text('signer_id', { required }),
  text('id', { hint: '1 to 64 of A–Z a–z 0–9 _ and -. If empty, one is generated.' }),
  text('notification_id'),
  { kind: 'flag', name: 'paused' },
  rows('custom_rpc_urls', 'endpoint', [
    text('url', { required, hint: 'An http, https, ws or wss URL. It is masked after it is stored.' }),
    decimal('weight', { hint: 'From 0 to 100. The default is 100.' }),
  ]),
  { ...rows('labels', 'label', [text('key'), text('value')]), kind: 'labels' },
];

const spelling = { id: 'ID', eip1559: 'EIP-1559', rpc: 'RPC', url: 'URL', urls: 'URLs', tx: 'transaction' };

export function titleOf({ name, title }) {
  if (title) return title;
  const words = name.split('_').map((word) => spelling[word] ?? word).join(' ');
  return words[0].toUpperCase() + words.slice(1);
}

// Returns the values that every relayer with the terms of a selector has. Of several values
// it has the first.
export function valuesOf(terms) {
  const values = {};
  for (const [name, value] of terms.toReversed()) {
    if (name.startsWith('label.')) values.labels = { ...values.labels, [name.slice(6)]: value };
    else if (name === 'paused') values.paused = value === 'true';
    else if (relayerFields.some((field) => field.name === name)) values[name] = value;
  }
  return values;
}

// Returns the fields on a JSON path of a relayer, such as policies.swap_config.strategy,
// the outermost first.
export function fieldsOn(path, networkType) {
  const [, label] = /^labels\.(.*)$/.exec(path) ?? [];
  if (label !== undefined) return [{ name: 'labels' }, { title: label }]; // a key may contain dots
  let fields = [...relayerFields, { ...group('policies', policyFields[networkType]), title: 'Policy' }];
  return path.split('.').map((name) => {
    const field = fields?.find((candidate) => candidate.name === name) ?? { name };
    fields = field.fields;
    return field;
  });
}
