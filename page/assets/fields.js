// The fields of a relayer and of its policy, from the OpenAPI document that the server serves.

import { callAPI } from './api.js';

let schemas;
let byType = {}; // the fields of a new relayer by its network type

// Reads the description of the fields once. Without it the page has no form.
export async function loadFields() {
  if (schemas) return;
  schemas = (await callAPI('/openapi.json')).components.schemas;
  byType = Object.fromEntries(Object.entries(schemas.CreateRelayerRequest.discriminator.mapping).map(([type, reference]) => [type, fieldsOf(resolve({ $ref: reference }))]));
}

export const networkTypes = () => Object.keys(byType);

// Follows references, and leaves out the alternatives that a field is null, or an amount a string.
// The description of a field is also that of its type.
function resolve(schema) {
  const others = schema.anyOf?.filter(({ type }) => type !== 'null') ?? [];
  const isOne = others.length === 1 || others.some(({ $ref }) => $ref?.endsWith('/Wei'));
  const target = schema.$ref ? schemas[schema.$ref.split('/').pop()] : isOne ? others[0] : undefined;
  if (!target) return schema;
  const resolved = resolve(target);
  return { ...resolved, description: [schema.description, resolved.description].filter(Boolean).join(' ') };
}

// Returns the unit that a description names.
function unitOf(description = '') {
  const [unit] = /(?<=\bin )(wei|lamports|stroops|percent|bytes|seconds)\b|smallest unit/.exec(description) ?? [];
  return { percent: '%', 'smallest unit': 'smallest units' }[unit] ?? unit;
}

// Returns the first sentence of a description, or if it is long its first part.
function shortOf(description = '') {
  const sentence = /^.*?\.(?= |$)/.exec(description)?.[0].replace(/[`"]/g, '') ?? '';
  return sentence.length > 150 ? sentence.split(/[:;]/)[0].replace(/\.?$/, '.') : sentence;
}

const examples = { wei: 'Such as 100 gwei or 0.5 ether.', lamports: 'Such as 0.5 SOL.', stroops: 'Such as 0.5 XLM.' };
const nouns = { custom_rpc_urls: 'endpoint' };
const fieldsOf = ({ properties, required = [], description }) => Object.entries(properties).map(([name, schema]) => fieldOf(name, schema, required.includes(name), description));

function fieldOf(name, given, required, above) {
  const schema = resolve(given);
  const type = [schema.type].flat().find((one) => one !== 'null');
  const unit = ['integer', 'number'].includes(type) ? unitOf(schema.description) ?? (/amount/.test(name) ? unitOf(above) : undefined) : undefined;
  const sentence = shortOf(schema.description);
  const field = { name, required, unit, hint: [sentence, examples[unit]].filter(Boolean).join(' ') };
  if (name === 'network_type') return { ...field, kind: 'choice', options: Object.keys(schemas.CreateRelayerRequest.discriminator.mapping) };
  if (schema.enum) return { ...field, kind: 'choice', options: schema.enum };
  if (type === 'boolean') return { ...field, kind: required ? 'flag' : 'yesNo' };
  if (type === 'integer' || type === 'number') return { ...field, kind: 'number', keys: examples[unit] ? 'text' : type === 'integer' ? 'numeric' : 'decimal' };
  if (type === 'string') return { ...field, kind: 'text' };
  if (type === 'array') {
    const items = resolve(schema.items);
    return items.properties ? { ...field, kind: 'rows', noun: nouns[name] ?? 'token', fields: fieldsOf(items) } : { ...field, kind: 'lines', hint: sentence + ' One per line.' };
  }
  if (schema.properties) return { ...field, kind: name === 'policies' ? name : 'group', fields: fieldsOf(schema) };
  if (schema.additionalProperties?.type === 'string') return { ...field, kind: 'pairs', hint: sentence + ' One per line, such as key=value.' };
  return { ...field, kind: 'json' };
}

// Returns the fields of a relayer, those that a form changes, and those of its policy. A button changes paused.
// A newer version may have stored other network types: the fields of these are not known.
export const relayerFields = (type) => byType[type] ?? [];
export const editableFields = (type) => relayerFields(type).filter(({ name }) => name !== 'paused' && name in schemas.UpdateRelayerRequest.properties);
export const policyFields = (type) => relayerFields(type).find(({ name }) => name === 'policies').fields;
const spelling = { policies: 'policy', id: 'ID', eip1559: 'EIP-1559', rpc: 'RPC', url: 'URL', urls: 'URLs', tx: 'transaction' };

export function titleOf({ name, title }) {
  if (title !== undefined) return title || '""';
  const words = name.replace(/_(percentage|lamports|seconds)$/, '').split('_').map((word) => spelling[word] ?? word).join(' ');
  return words[0].toUpperCase() + words.slice(1);
}

// Returns the fields on a JSON path of a relayer, such as policies.swap_config.strategy,
// the outermost first.
export function fieldsOn(path, type) {
  const [, above, key] = /^(labels|settings)\.(.*)$/s.exec(path) ?? [];
  if (key !== undefined) return [{ name: above.replace(/s$/, '') }, { title: key }]; // a key may contain dots
  let fields = relayerFields(type);
  return path.split('.').map((name) => {
    const field = fields?.find((candidate) => candidate.name === name) ?? { name };
    fields = field.fields;
    return field;
  });
}
