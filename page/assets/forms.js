// Forms of relayers, from the description of their fields. A control has an element, is filled with
// a value, and collects one: undefined if it is empty. While it collects, it adds itself to found
// under its current JSON path, so that errors appear next to it. The path of a row changes when
// rows above it are removed.

import { digitsOf, humanAmount } from './amounts.js';
import { make, newID, write } from './dom.js';
import { editableFields, networkTypes, policyFields, relayerFields, titleOf } from './fields.js';
import { isSame, numberOrText, patchBetween, tryJSON, writeJSON } from './json.js';

const wrongLine = () => make('p', { class: 'wrong', id: newID('wrong') });

// A label is above its input; the hint and the error are below.
function labelled(field, input, more = []) {
  const below = [...(field.hint ? [make('p', { class: 'hint', id: newID('hint') }, field.hint)] : []), ...more, wrongLine()];
  const isRequired = field.required && input.type !== 'checkbox';
  input.id = newID('field');
  if (isRequired) input.setAttribute('aria-required', 'true');
  input.setAttribute('aria-describedby', below.map(({ id }) => id).join(' '));
  const label = make('label', { for: input.id }, titleOf(field) + (field.unit ? ' (' + field.unit + ')' : '') + (isRequired ? ' *' : ''));
  return { input, wrong: below.at(-1), element: make('div', { class: 'field' }, [label, input, ...below]) };
}

// Returns the control of one input. read returns its value.
function single(shown, read, fill) {
  return { ...shown, fill, collect: (path, found) => (found.set(path, shown), read()) };
}

const exactly = { autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false' };
const area = () => make('textarea', { ...exactly, rows: 3 });

// Returns the control of an input whose text shows a value, and is read as one.
function typed(field, input, show, read) {
  return single(labelled(field, input), () => read(input.value), (value) => { input.value = show(value); });
}

// Returns the control of a select. Each option has a text and what it stands for.
function select(field, options) {
  const texts = [field.required ? 'Choose one' : 'Not set', ...options.map(([text]) => text)];
  const shown = labelled(field, make('select', {}, texts.map((text) => make('option', {}, text))));
  const read = () => options[shown.input.selectedIndex - 1]?.[1] ?? (field.required ? '' : undefined);
  return single(shown, read, (value) => { shown.input.selectedIndex = options.findIndex(([, stands]) => stands === value) + 1; });
}

// No address, account or strategy contains a comma or a space.
function readLines(text) {
  const entries = text.split(/[\s,]+/).filter((entry) => entry !== '');
  return entries.length > 0 ? entries : undefined;
}

// Returns the members that lines such as team=payments describe.
function readPairs(text) {
  const members = Object.create(null);
  for (const line of text.split('\n').filter((entry) => entry.trim() !== '')) {
    const [, key, value = ''] = /^([^=]*)=?(.*)$/s.exec(line);
    members[key in members ? key + ' (again)' : key] = value; // a space is invalid, so that the API reports it
  }
  return Object.keys(members).length > 0 ? members : undefined;
}

// The controls of each kind of field. entered returns what the form has in another field.
const controls = {
  text: (field) => typed(field, make('input', exactly), (value) => value, (text) => (text === '' && !field.required ? undefined : text)),
  // The API reports what is wrong with a text that is not JSON.
  json: (field) => typed({ ...field, unit: 'JSON' }, area(), (value) => writeJSON(value, 2), (text) => (text.trim() === '' ? undefined : tryJSON(text) ?? text)),
  pairs: (field) => typed(field, area(), (members) => Object.entries(members).map((pair) => pair.join('=')).join('\n'), readPairs),
  lines: (field) => typed(field, area(), (entries) => entries.join('\n'), readLines),

  number(field) {
    const human = make('p', { class: 'human', id: newID('human') });
    const { input, ...shown } = labelled(field, make('input', { ...exactly, inputmode: field.keys, class: 'exact' }), [human]);
    const text = () => input.value.trim();
    const digits = () => digitsOf(text(), field.unit);
    const showHuman = () => {
      const amount = digits() ? digits() + ' ' + field.unit : humanAmount(text(), field.unit);
      write(human, amount && '= ' + amount);
    };
    input.addEventListener('input', showHuman);
    return single({ ...shown, input }, () => (text() === '' ? undefined : numberOrText(digits() ?? text())), (value) => {
      input.value = value.text;
      showHuman();
    });
  },

  flag(field) {
    const shown = labelled(field, make('input', { type: 'checkbox' }));
    shown.element.prepend(shown.input);
    return single(shown, () => shown.input.checked, (value) => { shown.input.checked = value; });
  },

  choice: (field) => select(field, field.options.map((option) => [option, option])),
  yesNo: (field) => select(field, [['Yes', true], ['No', false]]),

  group(field, entered) {
    const parts = partsOf(field.fields, entered);
    const { element, shown } = section(titleOf(field), parts.map(([, control]) => control.element));
    let others = {}; // the members that have no control: a newer version may have stored them
    return {
      element,
      fill(value) {
        element.open = Object.keys(value).length > 0;
        others = Object.fromEntries(Object.entries(value).filter(([name]) => !parts.some(([part]) => part === name)));
        fillParts(parts, value);
      },
      collect: (path, found) => (found.set(path, shown), collectParts(parts, path + '.', found, others)),
    };
  },

  rows({ noun, ...field }, entered) {
    const add = make('button', { type: 'button' }, 'Add ' + (/^[aeiou]/.test(noun) ? 'an ' : 'a ') + noun);
    const { element, shown } = section(titleOf(field), [add]);
    const rows = [];
    const number = (row, index) => {
      write(row.element.firstChild, titleOf({ name: noun }) + ' ' + (index + 1));
      write(row.remove, 'Remove ' + noun + ' ' + (index + 1));
    };
    const addRow = () => {
      const remove = make('button', { type: 'button', onclick() {
        rows.splice(rows.indexOf(row), 1);
        row.element.remove();
        rows.forEach(number);
        add.focus();
      } });
      const row = { ...keeping(controls.group({ name: noun, fields: field.fields }, entered)), remove };
      row.element.open = true;
      row.element.lastChild.append(remove);
      number(row, rows.push(row) - 1);
      add.before(row.element);
      return row;
    };
    add.addEventListener('click', () => addRow().element.querySelector('input').focus());
    return {
      element,
      fill(values) {
        element.open = values.length > 0;
        values.forEach((value) => addRow().fill(value));
      },
      collect(path, found) {
        found.set(path, shown);
        const values = rows.map((row, index) => row.collect(path + '[' + index + ']', found) ?? {});
        return values.length > 0 ? values : undefined;
      },
    };
  },

  // The network type selects the policy, which opens then.
  policies(field, entered) {
    const groups = new Map(networkTypes().map((type) => [type, controls.group({ ...field, fields: policyFields(type) }, entered)]));
    const current = () => groups.get(entered('network_type'));
    const show = () => groups.forEach((group) => {
      group.element.hidden = group !== current();
      group.element.open ||= group === current();
    });
    return {
      element: make('div', {}, [...groups.values()].map(({ element }) => element)),
      show,
      fill(value) {
        current()?.fill(value); // a newer version may have stored other network types
        show();
      },
      collect: (path, found) => current()?.collect(path, found),
    };
  },
};

// Returns a control whose value stays exactly as it is stored until the user changes it, even if
// the input cannot show all of it, such as an empty member.
function keeping(control) {
  let kept; // the stored value, and how the input shows it
  return {
    ...control,
    fill(value) {
      control.fill(value);
      kept = { value, shown: control.collect('', new Map()) };
    },
    collect(path, found) {
      const value = control.collect(path, found);
      return kept && isSame(value, kept.shown) ? kept.value : value;
    },
  };
}

// Returns a group that is folded until it holds a value or an error.
function section(title, content) {
  const wrong = wrongLine();
  const summary = make('summary', { id: newID('summary') }, title);
  const group = make('div', { class: 'fields', role: 'group', tabindex: -1, 'aria-labelledby': summary.id, 'aria-describedby': wrong.id }, [wrong, ...content]);
  return { element: make('details', { class: 'section' }, [summary, group]), shown: { input: group, wrong } };
}

const partsOf = (fields, entered) => fields.map((field) => [field.name, keeping(controls[field.kind](field, entered))]);

function fillParts(parts, object) {
  for (const [name, control] of parts) if (object[name] !== undefined) control.fill(object[name]);
}

function collectParts(parts, prefix, found, others = {}) {
  const object = { ...others };
  for (const [name, control] of parts) {
    const value = control.collect(prefix + name, found);
    if (value !== undefined) object[name] = value;
  }
  return Object.keys(object).length > 0 ? object : undefined;
}

// Errors next to their fields.

// Returns the control of an error: the one at its path or, if a list or JSON is a
// single control, the one above it.
function controlAt(path, found) {
  for (let end = path.length; end > 0; end = Math.max(path.lastIndexOf('.', end - 1), path.lastIndexOf('[', end - 1))) {
    const control = found.get(path.slice(0, end));
    const rest = path.slice(end);
    if (control) return [control, rest && rest.replace(/^\./, '').replace(/^\[(\d+)\]/, (_, index) => 'entry ' + (Number(index) + 1)) + ' '];
  }
  return [];
}

// Shows an error next to its field, in unfolded groups, and returns what can have the focus. An error
// may have no field in the form.
function placeError({ field, message }, found) {
  const [control, where] = field === undefined ? [] : controlAt(field, found);
  if (!control) return undefined;
  const { input, wrong } = control;
  write(wrong, wrong.textContent + (wrong.textContent ? '; ' : '') + where + message);
  if (input.matches('input, select, textarea')) input.ariaInvalid = 'true';
  for (let group = input.closest('.section'); group; group = group.parentElement.closest('.section')) group.open = true;
  return input;
}

class Form {
  constructor(parts) {
    this.parts = parts;
    this.elements = parts.map(([, { element }]) => element);
    this.found = new Map();
  }

  isChanged() { return !isSame(this.before, this.collect(new Map())); }

  // Returns the changes of the user as a merge patch of the stored relayer. A field that the
  // user did not change is not part of it, so that it keeps its current value.
  changes(stored) { return patchBetween(this.before, this.collect(), stored); }

  collect(found = this.found) {
    found.clear();
    return collectParts(this.parts, '', found) ?? {};
  }

  clearErrors() {
    for (const { wrong, input } of this.found.values()) {
      write(wrong, '');
      input.ariaInvalid = null;
    }
  }

  // Shows problems next to their fields, and returns those that have none in the form.
  showErrors(problems) {
    const placed = problems.map((problem) => placeError(problem, this.found));
    placed.find((input) => input)?.focus();
    return problems.filter((_, index) => !placed[index]);
  }
}

// What every relayer has comes first, and lists, which may be long, come last.
const last = ['flag', 'policies', 'rows', 'pairs', 'json'];

function build(values, stored) {
  const fields = stored ? editableFields(stored.network_type) : relayerFields(networkTypes()[0]);
  const controlOf = (name) => parts.find(([part]) => part === name)?.[1];
  const entered = (name) => stored?.[name] ?? controlOf(name).collect('', new Map());
  const parts = partsOf(fields.toSorted((a, b) => last.indexOf(a.kind) - last.indexOf(b.kind) || b.required - a.required), entered);
  fillParts(parts, values);
  controlOf('policies')?.show();
  if (!stored) controlOf('network_type').input.addEventListener('change', controlOf('policies').show);
  return new Form(parts);
}

// Returns the form of a stored relayer, or of a new one, with some values as entries of the user.
export function relayerForm(values, stored) {
  const form = build(values, stored);
  form.before = (values === stored ? form : build(stored ?? {}, stored)).collect();
  return form;
}
